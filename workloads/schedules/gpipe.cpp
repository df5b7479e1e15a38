#include "workloads/schedules/schedule.h"

namespace tessera {

std::vector<ScheduledPass> forward_only(int micro_batches) {
  std::vector<ScheduledPass> passes;
  for (int i = 0; i < micro_batches; ++i) passes.push_back({PassDirection::forward, i});
  return passes;
}

std::vector<ScheduledPass> gpipe(int micro_batches) {
  std::vector<ScheduledPass> passes = forward_only(micro_batches);
  for (int i = 0; i < micro_batches; ++i) passes.push_back({PassDirection::backward, i});
  return passes;
}

}  // namespace tessera
