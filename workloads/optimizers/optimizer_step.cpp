#include "workloads/optimizers/optimizer_step.h"

#include <algorithm>
#include <utility>

#include "workloads/optimizers/multi_tensor.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

constexpr std::int64_t kFp32 = 4;
/// Bytes of a number that Muon makes orthogonal, in bf16 (Jordan et al., 2024).
constexpr std::int64_t kMuonFormat = 2;
/// Elements, DeepSpeed's default `reduce_bucket_size`.
constexpr std::int64_t kZeroBucket = 500'000'000;

/// `.item()`: the host waits for a number.
GraphOp read_by_host(const char* name) {
  GraphOp op;
  op.kind = GraphOpKind::host_sync;
  op.phase = Phase::optimizer;
  op.name = name;
  return op;
}

/// Numbers of a moment in 8 bits that share an fp32 scale.
/// Source: bitsandbytes, optim/optimizer.py, block-wise quantization.
constexpr std::int64_t kNumbersPerScale = 256;

class UpdateStep {
 public:
  UpdateStep(const StepOptions& step, const UpdatedParameters& updated)
      : step_(step),
        profile_(step.framework),
        updated_(updated),
        parameters_(updated.parameters),
        gradient_(element_bytes(step.formats.gradients)),
        weight_(step.formats.master_weights ? kFp32 : element_bytes(step.formats.parameters)),
        state_(element_bytes(step.formats.optimizer_states)) {}

  OptimizerStep run() &&;

 private:
  GraphOp pass(const char* name, PassTraffic traffic, double flops) const {
    return multi_tensor_pass(name, Phase::optimizer, parameters_, traffic, flops);
  }
  /// The same over `parameters`, or a kernel for each tensor.
  GraphOp each(const char* name, std::int64_t parameters, PassTraffic traffic, double flops) const {
    GraphOp op = multi_tensor_pass(name, Phase::optimizer, parameters, traffic, flops);
    if (profile_.per_tensor_updates) op.host_calls = updated_.tensors;
    return op;
  }
  void reduce(OptimizerStep& result) const;
  void copy_partition(OptimizerStep& result) const;
  void unscale(OptimizerStep& result);
  void clip(OptimizerStep& result) const;
  std::vector<GraphOp> update() const {
    if (step_.optimizer == OptimizerKind::lamb) return lamb_update();
    if (step_.optimizer == OptimizerKind::lars) return lars_update();
    if (step_.optimizer == OptimizerKind::sgd) return momentum_update();
    if (is_muon(step_.optimizer)) return muon_update();
    if (step_.formats.optimizer_states == Precision::int8) return eight_bit_update();
    return profile_.fused_optimizer ? fused_update() : line_by_line_update();
  }
  std::vector<GraphOp> fused_update() const;
  std::vector<GraphOp> eight_bit_update() const;
  std::vector<GraphOp> line_by_line_update() const;
  std::vector<GraphOp> momentum_update() const;
  std::vector<GraphOp> lamb_update() const;
  std::vector<GraphOp> lars_update() const;
  std::vector<GraphOp> muon_update() const;
  std::vector<GraphOp> muon_apply() const;

  const StepOptions& step_;
  const FrameworkProfile& profile_;
  UpdatedParameters updated_;
  std::int64_t parameters_;
  std::int64_t gradient_;  ///< bytes per element; 4 once unscaled
  std::int64_t weight_;    ///< of what the optimizer updates
  std::int64_t state_;
};

void UpdateStep::reduce(OptimizerStep& result) const {
  const auto buffer = [&](const char* name, PassTraffic traffic) {
    return buffer_pass(name, Phase::gradient_reduction, KernelKind::elementwise, parameters_,
                       traffic);
  };
  const bool divides = step_.layout.has_replicas() && !profile_.average_in_sum;
  if (profile_.always_average || divides)
    result.average.push_back(buffer("gradients.average", {gradient_, gradient_}));
  if (copies_gradients(step_)) {
    result.average.push_back(buffer("gradients.to_bucket", {gradient_, gradient_}));
    result.average.back().allocated = Bytes(gradient_ * kZeroBucket);
    result.average.back().freed = Bytes(gradient_ * kZeroBucket);
  }
  const std::int64_t summed = element_bytes(step_.formats.reduce);
  if (!step_.layout.has_replicas() || step_.formats.reduce == step_.formats.gradients) return;
  result.average.push_back(buffer("gradients.cast", {gradient_, summed}));
  result.after_reduce.push_back(buffer("gradients.cast_back", {summed, gradient_}));
}

/// The partition and a flat copy of it, of which the partition stays to the end of the step.
void UpdateStep::copy_partition(OptimizerStep& result) const {
  for (const char* name : {"gradients.partition", "gradients.flatten"}) {
    result.unscale.push_back(pass(name, {gradient_, gradient_}, 0));
    result.unscale.back().allocated = Bytes(gradient_ * parameters_);
  }
}

void UpdateStep::unscale(OptimizerStep& result) {
  if (step_.precision != Precision::fp16) return;
  if (gradient_ != kFp32 && step_.formats.master_weights) {
    if (copies_gradients(step_)) copy_partition(result);
    result.unscale.push_back(pass("gradients.to_fp32", {gradient_, kFp32}, 0));
    result.unscale.back().allocated = Bytes(kFp32 * parameters_);
    if (copies_gradients(step_)) result.unscale.back().freed = Bytes(gradient_ * parameters_);
    gradient_ = kFp32;
  }
  result.unscale.push_back(pass("gradients.unscale", {gradient_, gradient_}, 2));
  result.unscale.push_back(read_by_host("gradients.found_inf.item"));
}

void UpdateStep::clip(OptimizerStep& result) const {
  if (step_.optimizer == OptimizerKind::lamb) {
    // Computed whether or not it clips; stage 1 divides by it.
    result.norm = {pass("lamb.gradient_norm", {gradient_, 0}, 2)};
    return;
  }
  if (!step_.clip_gradients) return;
  result.norm = {each("clip.norm", updated_.summed, {gradient_, 0}, 2)};
  const bool one_model_rank = step_.layout.tensor * step_.layout.pipeline * shard_ranks(step_) == 1;
  const bool megatron_reads =
      profile_.modules == ModuleTree::megatron && !profile_.per_tensor_updates;
  const bool host_reads = megatron_reads || profile_.reads_norm;
  if (host_reads && one_model_rank) result.norm.push_back(read_by_host("clip.norm.item"));
  result.update = {each("clip.scale", updated_.summed, {gradient_, gradient_}, 1)};
}

/// Reads gradient, parameter and both moments; writes parameter and moments.
std::vector<GraphOp> UpdateStep::fused_update() const {
  return {pass("adam", {gradient_ + weight_ + 2 * state_, weight_ + 2 * state_}, 14)};
}

/// One kernel for each parameter, which unpacks and packs both moments (bitsandbytes, AdamW8bit).
std::vector<GraphOp> UpdateStep::eight_bit_update() const {
  GraphOp op = pass("adam8bit", {gradient_ + weight_ + 2 * state_, weight_ + 2 * state_}, 20);
  op.host_calls = std::max(1, updated_.tensors);
  return {op};
}

/// torch/optim/adamw.py: a pass per line of the update rule over lists of tensors
/// (_multi_tensor_adamw), or a kernel for each tensor (_single_tensor_adamw).
std::vector<GraphOp> UpdateStep::line_by_line_update() const {
  const auto line = [&](const char* name, PassTraffic traffic, double flops) {
    return each(name, parameters_, traffic, flops);
  };
  std::vector<GraphOp> ops{line("adamw.weight_decay", {weight_, weight_}, 1),
                           line("adamw.exp_avg.lerp", {gradient_ + state_, state_}, 3),
                           line("adamw.exp_avg_sq.mul", {state_, state_}, 1),
                           line("adamw.exp_avg_sq.addcmul", {gradient_ + state_, state_}, 3),
                           line("adamw.denominator.sqrt", {state_, state_}, 1),
                           line("adamw.denominator.div", {state_, state_}, 1),
                           line("adamw.denominator.add", {state_, state_}, 1),
                           line("adamw.addcdiv", {weight_ + 2 * state_, weight_}, 3)};
  constexpr std::size_t kMakesDenominator = 4;
  ops[kMakesDenominator].allocated = Bytes(state_ * parameters_);
  ops.back().freed = Bytes(state_ * parameters_);
  return ops;
}

/// torch/optim/sgd.py, _multi_tensor_sgd with momentum and weight decay: one pass per line of the
/// update rule, or one in all.
std::vector<GraphOp> UpdateStep::momentum_update() const {
  if (profile_.fused_optimizer)
    return {pass("sgd", {gradient_ + weight_ + state_, weight_ + state_}, 6)};
  return {pass("sgd.weight_decay", {gradient_ + weight_, gradient_}, 2),
          pass("sgd.momentum.mul", {state_, state_}, 1),
          pass("sgd.momentum.add", {gradient_ + state_, state_}, 1),
          pass("sgd.add", {weight_ + state_, weight_}, 2)};
}

/// apex csrc/multi_tensor_lamb.cu: norms of the weights, the update in place of the gradient, its
/// norms, and the weights.
std::vector<GraphOp> UpdateStep::lamb_update() const {
  return {pass("lamb.weight_norms", {weight_, 0}, 2),
          pass("lamb.stage1", {gradient_ + weight_ + 2 * state_, gradient_ + 2 * state_}, 15),
          pass("lamb.update_norms", {gradient_, 0}, 2),
          pass("lamb.stage2", {gradient_ + weight_, weight_}, 2)};
}

/// NVIDIA's FusedLARS (multi_tensor_lars): both norms, then one pass as of SGD.
std::vector<GraphOp> UpdateStep::lars_update() const {
  return {pass("lars.weight_norms", {weight_, 0}, 2),
          pass("lars.gradient_norms", {gradient_, 0}, 2),
          pass("lars", {gradient_ + weight_ + state_, weight_ + state_}, 7)};
}

/// Adam for what is no matrix of a layer; of the others momentum and Nesterov's look ahead, in 16
/// bit. Both run a kernel for each tensor at least. Source: emerging_optimizers
/// orthogonalized_optimizers (NVIDIA), as Megatron-Core's optimizer/muon.py calls it (recalled).
std::vector<GraphOp> UpdateStep::muon_update() const {
  const std::int64_t others = parameters_ - updated_.matrices;
  GraphOp momentum = multi_tensor_pass("muon.momentum", Phase::optimizer, updated_.matrices,
                                       {gradient_ + state_, state_ + kMuonFormat}, 4);
  momentum.host_calls = std::max(momentum.host_calls, updated_.tensors);
  momentum.allocated = Bytes(kMuonFormat * updated_.matrices);
  const PassTraffic adam{gradient_ + weight_ + 2 * state_, weight_ + 2 * state_};
  return {multi_tensor_pass("adam", Phase::optimizer, others, adam, 14), std::move(momentum)};
}

std::vector<GraphOp> UpdateStep::muon_apply() const {
  GraphOp update = multi_tensor_pass("muon.update", Phase::optimizer, updated_.matrices,
                                     {kMuonFormat + weight_, weight_}, 3);
  update.host_calls = std::max(update.host_calls, updated_.tensors);
  update.freed = Bytes(kMuonFormat * updated_.matrices);
  return {std::move(update)};
}

OptimizerStep UpdateStep::run() && {
  OptimizerStep result;
  if (!profile_.gradients_set_to_none) {
    result.before_forward = {buffer_pass("gradients.zero", Phase::optimizer, KernelKind::fill,
                                         parameters_, {0, gradient_})};
  }
  reduce(result);
  if (step_.optimizer == OptimizerKind::none) return result;
  const std::int64_t reduced = gradient_;
  unscale(result);
  clip(result);
  for (GraphOp& op : update()) result.update.push_back(std::move(op));
  const bool muon = is_muon(step_.optimizer);
  if (muon) result.apply = muon_apply();
  std::vector<GraphOp>& last = muon ? result.apply : result.update;
  if (gradient_ != reduced) {
    const std::int64_t partition = copies_gradients(step_) ? reduced : 0;
    last.back().freed += Bytes((kFp32 + partition) * parameters_);
  }
  const std::int64_t held = element_bytes(step_.formats.parameters);
  if (step_.formats.master_weights)
    last.push_back(each("parameters.from_master", parameters_, {kFp32, held}, 0));
  return result;
}

}  // namespace

OptimizerStep optimizer_step(const StepOptions& step, const UpdatedParameters& updated) {
  return UpdateStep(step, updated).run();
}

OptimizerStep optimizer_step(const StepOptions& step, std::int64_t parameters) {
  const bool muon = is_muon(step.optimizer);
  return optimizer_step(
      step, {.parameters = parameters, .summed = parameters, .matrices = muon ? parameters : 0});
}

CategoryBytes state_bytes(const StepOptions& step, std::int64_t parameters) {
  const MixedPrecision& formats = step.formats;
  CategoryBytes bytes;
  bytes[MemoryCategory::parameters] = Bytes(element_bytes(formats.parameters) * parameters);
  if (step.mode == StepMode::inference) return bytes;
  const bool twice = copies_gradients(step) && step.precision == Precision::bf16;
  bytes[MemoryCategory::gradients] =
      Bytes((element_bytes(formats.gradients) + (twice ? element_bytes(Precision::bf16) : 0)) *
            parameters);
  if (step.mode != StepMode::training || step.optimizer == OptimizerKind::none) return bytes;
  const bool momentum_alone = step.optimizer == OptimizerKind::sgd ||
                              step.optimizer == OptimizerKind::lars || is_muon(step.optimizer);
  const std::int64_t moments = momentum_alone ? 1 : 2;
  const std::int64_t states =
      (formats.master_weights ? kFp32 : 0) + moments * element_bytes(formats.optimizer_states);
  const std::int64_t blocks = formats.optimizer_states == Precision::int8
                                  ? (parameters + kNumbersPerScale - 1) / kNumbersPerScale
                                  : 0;
  bytes[MemoryCategory::optimizer] = Bytes(states * parameters + moments * kFp32 * blocks);
  return bytes;
}

std::int64_t bytes_per_parameter(const StepOptions& step) {
  return state_bytes(step, 1).total().value();
}

}  // namespace tessera
