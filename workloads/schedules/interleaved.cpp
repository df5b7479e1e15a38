#include <algorithm>

#include "workloads/schedules/schedule.h"

namespace tessera {
namespace {

/// The `index`-th pass in one direction: groups of `stages` micro-batches, chunk after chunk.
ScheduledPass pass_number(int index, PassDirection direction, const PipelineShape& shape) {
  const int group = shape.stages * shape.virtual_stages;
  const int chunk = index % group / shape.stages;
  const bool forward = direction == PassDirection::forward;
  return {direction, index / group * shape.stages + index % shape.stages,
          forward ? chunk : shape.virtual_stages - 1 - chunk};
}

}  // namespace

int interleaved_warm_up(int stage, const PipelineShape& shape) {
  const int total = shape.micro_batches * shape.virtual_stages;
  const int ahead = (shape.stages - stage - 1) * 2 + (shape.virtual_stages - 1) * shape.stages;
  return std::min(ahead + shape.ahead, total);
}

std::vector<ScheduledPass> interleaved_1f1b(int stage, const PipelineShape& shape) {
  const int total = shape.micro_batches * shape.virtual_stages;
  const int warm_up = interleaved_warm_up(stage, shape);
  std::vector<ScheduledPass> passes;
  for (int k = 0; k < total + warm_up; ++k) {
    if (k < total) passes.push_back(pass_number(k, PassDirection::forward, shape));
    if (k >= warm_up) passes.push_back(pass_number(k - warm_up, PassDirection::backward, shape));
  }
  return passes;
}

}  // namespace tessera
