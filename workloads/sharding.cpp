#include "workloads/sharding.h"

#include <algorithm>

#include "workloads/optimizers/optimizer_step.h"

namespace tessera {
namespace {

/// Something is divided, be it the experts alone.
bool divides(const StepOptions& step) {
  return shard_ranks(step) > 1 || (step.layout.experts_apart() && expert_shard_ranks(step) > 1);
}

/// Weights are elsewhere: with other ranks, or, of a single one too, in host memory.
bool has_units(const StepOptions& step) {
  return divides(step) || offloads_parameters(step);
}

}  // namespace

int shard_ranks(const StepOptions& step) {
  const DataParallel& data = step.data_parallel;
  if (step.mode != StepMode::training || data.sharding == Sharding::none) return 1;
  return data.shard_group > 0 ? data.shard_group : step.layout.replicas();
}

bool gathers_units(const StepOptions& step) {
  if (!has_units(step)) return false;
  return step.data_parallel.sharding == Sharding::parameters || keeps_units(step);
}

bool keeps_units(const StepOptions& step) {
  const DataParallel& data = step.data_parallel;
  return has_units(step) && data.sharding == Sharding::gradients && data.gather_units;
}

bool holds_units(const StepOptions& step) {
  return keeps_units(step) && step.framework.splits_stages && step.layout.pipeline > 1;
}

bool gathers_fp8(const StepOptions& step) {
  const bool comes_as_fp8 = step.data_parallel.gather_fp8 || step.formats.fp8_parameters;
  return comes_as_fp8 && step.precision == Precision::fp8 && gathers_units(step);
}

std::int64_t saved_by_fp8_shard(const StepOptions& step, const Block& block) {
  if (!gathers_fp8(step) || !step.formats.fp8_parameters) return 0;
  const int orders = step.framework.fp8_scaling == Fp8Scaling::mxfp8 ? 2 : 1;
  const std::int64_t each = element_bytes(step.formats.parameters) - orders;
  const std::int64_t experts = std::min(spread_experts(step, block), block.fp8_parameters);
  return each * shard_of(step, block.fp8_parameters, experts);
}

bool scatters_gradients(const StepOptions& step) {
  if (offloads_update(step) && step.layout.replicas() == 1) return true;
  return divides(step) && step.data_parallel.sharding >= Sharding::gradients;
}

bool offloads_update(const StepOptions& step) {
  return step.offload_optimizer && step.mode == StepMode::training;
}

bool offloads_parameters(const StepOptions& step) {
  return offloads_update(step) && step.offload_parameters;
}

bool gathers_updates(const StepOptions& step) {
  return divides(step) && !gathers_units(step);
}

bool copies_gradients(const StepOptions& step) {
  return step.mode == StepMode::training && step.framework.deepspeed_zero &&
         step.data_parallel.sharding == Sharding::optimizer;
}

std::int64_t shard_of(const StepOptions& step, std::int64_t parameters, std::int64_t experts) {
  const ParameterParts parts = parts_of(step, parameters, experts);
  return parts.dense.shard() + parts.experts.shard();
}

ParameterParts parts_of(const StepOptions& step, std::int64_t parameters, std::int64_t experts) {
  return {.dense = {.group = GroupKind::shard,
                    .parameters = parameters - experts,
                    .ranks = shard_ranks(step),
                    .replicas = step.layout.replicas()},
          .experts = {.group = GroupKind::expert_data,
                      .parameters = experts,
                      .ranks = expert_shard_ranks(step),
                      .replicas = step.layout.expert_replicas()}};
}

std::int64_t spread_experts(const StepOptions& step, const Block& block) {
  return step.layout.experts_apart() ? block.expert_parameters : 0;
}

int expert_shard_ranks(const StepOptions& step) {
  if (step.mode != StepMode::training || step.data_parallel.sharding == Sharding::none) return 1;
  // Where several groups hold a copy of all states each, so do as many groups of experts' replicas.
  const int copies = step.layout.replicas() / shard_ranks(step);
  return std::max(1, step.layout.expert_replicas() / copies);
}

Precision block_parameter_format(const StepOptions& step) {
  return gathers_units(step) ? activation_precision(step.precision) : step.formats.parameters;
}

Precision block_gradient_format(const StepOptions& step) {
  const bool adds_up =
      step.framework.copies_gathered && !step.data_parallel.reduce_each_micro_batch;
  if (scatters_gradients(step) && adds_up) return step.formats.reduce;
  return scatters_gradients(step) ? activation_precision(step.precision) : step.formats.gradients;
}

bool copies_to_buckets(const StepOptions& step) {
  return step.framework.bucket_copies && step.mode == StepMode::training &&
         step.data_parallel.sharding == Sharding::none && step.layout.replicas() > 1;
}

namespace {

/// Elements that each replica updates, at least: tensors are dealt whole (deal_tensors).
std::int64_t dealt_evenly(const StepOptions& step, std::int64_t parameters, std::int64_t experts) {
  const auto of = [](std::int64_t count, int ranks) { return (count + ranks - 1) / ranks; };
  return of(parameters - experts, step.layout.replicas()) +
         of(experts, step.layout.expert_replicas());
}

}  // namespace

CategoryBytes persistent_parts(const StepOptions& step, std::int64_t parameters,
                               std::int64_t experts) {
  const std::int64_t shard = shard_of(step, parameters, experts);
  const auto of = [&](MemoryCategory category, std::int64_t held) {
    return state_bytes(step, held)[category];
  };
  CategoryBytes parts;
  parts[MemoryCategory::parameters] =
      of(MemoryCategory::parameters, gathers_units(step) ? shard : parameters);
  parts[MemoryCategory::gradients] =
      of(MemoryCategory::gradients, scatters_gradients(step) ? shard : parameters);
  parts[MemoryCategory::optimizer] = of(
      MemoryCategory::optimizer,
      step.optimizer == OptimizerKind::dist_muon ? dealt_evenly(step, parameters, experts) : shard);
  if (offloads_update(step)) parts[MemoryCategory::optimizer] = Bytes(0);
  if (offloads_parameters(step)) parts[MemoryCategory::parameters] = Bytes(0);
  if (offloads_update(step) && scatters_gradients(step))
    parts[MemoryCategory::gradients] = Bytes(0);
  if (copies_to_buckets(step))
    parts[MemoryCategory::gradients] += Bytes(element_bytes(step.formats.parameters) * parameters);
  return parts;
}

Bytes frozen_bytes(const StepOptions& step, const Block& block) {
  if (offloads_parameters(step)) return Bytes(0);
  return Bytes(element_bytes(step.formats.parameters) * shard_of(step, block.frozen_parameters));
}

Bytes persistent_bytes(const StepOptions& step, std::int64_t parameters, std::int64_t experts) {
  return persistent_parts(step, parameters, experts).total();
}

}  // namespace tessera
