#include "workloads/optimizers/multi_tensor.h"
#include "workloads/optimizers/optimizer_step.h"

namespace tessera {
namespace {

/// `.item()` on the norm; with model parallelism the host reads it after the all-reduce.
GraphOp read_by_host() {
  GraphOp op;
  op.kind = GraphOpKind::host_sync;
  op.phase = Phase::optimizer;
  op.name = "clip.norm.item";
  return op;
}

}  // namespace

OptimizerStep megatron_adam_step(const StepOptions& step, std::int64_t parameters) {
  OptimizerStep result;
  result.before_forward = {
      buffer_pass("gradients.zero", Phase::optimizer, KernelKind::fill, parameters, {0, 1})};
  result.average = {buffer_pass("gradients.average", Phase::gradient_reduction,
                                KernelKind::elementwise, parameters, {1, 1})};
  if (step.optimizer == OptimizerKind::none) return result;
  if (step.clip_gradients) {
    result.norm = {multi_tensor_pass("clip.norm", Phase::optimizer, parameters, {1, 0}, 2)};
    if (step.layout.tensor * step.layout.pipeline == 1) result.norm.push_back(read_by_host());
    result.update = {multi_tensor_pass("clip.scale", Phase::optimizer, parameters, {1, 1}, 1)};
  }
  // reads gradient, parameter and both moments; writes parameter and moments
  result.update.push_back(multi_tensor_pass("adam", Phase::optimizer, parameters, {4, 3}, 14));
  return result;
}

}  // namespace tessera
