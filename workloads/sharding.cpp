#include "workloads/sharding.h"

#include "workloads/optimizers/optimizer_step.h"

namespace tessera {

int shard_ranks(const StepOptions& step) {
  const DataParallel& data = step.data_parallel;
  if (step.mode != StepMode::training || data.sharding == Sharding::none) return 1;
  return data.shard_group > 0 ? data.shard_group : step.layout.replicas();
}

bool gathers_units(const StepOptions& step) {
  const DataParallel& data = step.data_parallel;
  if (shard_ranks(step) == 1) return false;
  return data.sharding == Sharding::parameters || keeps_units(step);
}

bool keeps_units(const StepOptions& step) {
  const DataParallel& data = step.data_parallel;
  return shard_ranks(step) > 1 && data.sharding == Sharding::gradients && data.gather_units;
}

bool scatters_gradients(const StepOptions& step) {
  return shard_ranks(step) > 1 && step.data_parallel.sharding >= Sharding::gradients;
}

bool gathers_updates(const StepOptions& step) {
  return shard_ranks(step) > 1 && !gathers_units(step);
}

std::int64_t shard_of(const StepOptions& step, std::int64_t parameters) {
  const std::int64_t ranks = shard_ranks(step);
  return (parameters + ranks - 1) / ranks;
}

Precision block_parameter_format(const StepOptions& step) {
  return gathers_units(step) ? activation_precision(step.precision) : step.formats.parameters;
}

Precision block_gradient_format(const StepOptions& step) {
  return scatters_gradients(step) ? activation_precision(step.precision) : step.formats.gradients;
}

Bytes persistent_bytes(const StepOptions& step, std::int64_t parameters) {
  const std::int64_t shard = shard_of(step, parameters);
  const std::int64_t weights = element_bytes(step.formats.parameters);
  const std::int64_t gradients =
      step.mode == StepMode::inference ? 0 : element_bytes(step.formats.gradients);
  const std::int64_t states = bytes_per_parameter(step) - weights - gradients;
  return Bytes(weights * (gathers_units(step) ? shard : parameters) +
               gradients * (scatters_gradients(step) ? shard : parameters) + states * shard);
}

}  // namespace tessera
