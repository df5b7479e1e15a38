#include <algorithm>

#include "workloads/schedules/schedule.h"

namespace tessera {

std::vector<ScheduledPass> one_f_one_b(int stage, int stages, int micro_batches, int ahead) {
  const int warm_up = std::min(micro_batches, stages - 1 - stage + ahead);
  std::vector<ScheduledPass> passes;
  int next_forward = 0;
  int next_backward = 0;
  while (next_forward < warm_up) passes.push_back({PassDirection::forward, next_forward++});
  while (next_forward < micro_batches) {
    passes.push_back({PassDirection::forward, next_forward++});
    passes.push_back({PassDirection::backward, next_backward++});
  }
  while (next_backward < micro_batches) {
    passes.push_back({PassDirection::backward, next_backward++});
  }
  return passes;
}

}  // namespace tessera
