#include "workloads/optimizers/multi_tensor.h"
#include "workloads/optimizers/optimizer_step.h"

namespace tessera {
namespace {

constexpr std::int64_t kElementBytes = 4;

/// torch/optim/adamw.py, _multi_tensor_adamw: one pass per line of the update rule.
std::vector<GraphOp> foreach_adamw(std::int64_t parameters) {
  const auto pass = [&](const char* name, PassTraffic traffic, double flops) {
    return multi_tensor_pass(name, Phase::optimizer, parameters, traffic, flops);
  };
  std::vector<GraphOp> ops{
      pass("adamw.weight_decay", {1, 1}, 1),     pass("adamw.exp_avg.lerp", {2, 1}, 3),
      pass("adamw.exp_avg_sq.mul", {1, 1}, 1),   pass("adamw.exp_avg_sq.addcmul", {2, 1}, 3),
      pass("adamw.denominator.sqrt", {1, 1}, 1), pass("adamw.denominator.div", {1, 1}, 1),
      pass("adamw.denominator.add", {1, 1}, 1),  pass("adamw.addcdiv", {3, 1}, 3)};
  constexpr std::size_t kMakesDenominator = 4;
  ops[kMakesDenominator].allocated = Bytes(kElementBytes * parameters);
  ops.back().freed = Bytes(kElementBytes * parameters);
  return ops;
}

}  // namespace

OptimizerStep torch_adamw_step(const StepOptions& step, std::int64_t parameters) {
  OptimizerStep result;
  if (step.layout.data > 1) {
    result.average = {buffer_pass("gradients.average", Phase::gradient_reduction,
                                  KernelKind::elementwise, parameters, {1, 1})};
  }
  if (step.optimizer == OptimizerKind::none) return result;
  if (step.clip_gradients) {
    result.norm = {multi_tensor_pass("clip.norm", Phase::optimizer, parameters, {1, 0}, 2)};
    result.update = {multi_tensor_pass("clip.scale", Phase::optimizer, parameters, {1, 1}, 1)};
  }
  for (GraphOp& op : foreach_adamw(parameters)) result.update.push_back(std::move(op));
  return result;
}

}  // namespace tessera
