#include <algorithm>

#include "workloads/schedules/schedule.h"

namespace tessera {
namespace {

/// 1F1B with `warm_up` forward passes ahead that keeps `kept` weight gradients until no forward
/// pass is left to run.
std::vector<ScheduledPass> zero_bubble(int warm_up, int kept, int micro_batches) {
  std::vector<ScheduledPass> passes;
  int forwards = 0;
  int weights = 0;
  while (forwards < std::min(warm_up, micro_batches))
    passes.push_back({PassDirection::forward, forwards++});
  for (int i = 0; i < micro_batches; ++i) {
    const bool steady = forwards < micro_batches;
    if (steady) passes.push_back({PassDirection::forward, forwards++});
    passes.push_back({PassDirection::input_gradient, i});
    if (!steady || i >= kept) passes.push_back({PassDirection::weight_gradient, weights++});
  }
  while (weights < micro_batches) passes.push_back({PassDirection::weight_gradient, weights++});
  return passes;
}

}  // namespace

std::vector<ScheduledPass> zero_bubble_h1(int stage, int stages, int micro_batches) {
  return zero_bubble(stages - 1 - stage, stage, micro_batches);
}

std::vector<ScheduledPass> zero_bubble_h2(int stage, int stages, int micro_batches) {
  return zero_bubble(2 * (stages - 1 - stage), 2 * stage, micro_batches);
}

}  // namespace tessera
