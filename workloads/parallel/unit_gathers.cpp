#include "workloads/parallel/unit_gathers.h"

#include "workloads/optimizers/multi_tensor.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

/// Weight gradients alone need no weights.
bool reads_weights(const ScheduledPass& pass) {
  return pass.direction != PassDirection::weight_gradient;
}

}  // namespace

UnitGathers::UnitGathers(PassLibrary& library, const StepOptions& step, OpQueue& queue)
    : library_(library),
      graph_(library.graph()),
      step_(step),
      queue_(queue),
      on_(gathers_units(step)) {}

bool UnitGathers::is_unit(int position) const {
  return graph_.layer_numbers[static_cast<std::size_t>(position)] != kNoLayer;
}

Bytes UnitGathers::gathered_bytes(std::int64_t parameters) const {
  return Bytes(element_bytes(block_parameter_format(step_)) * parameters);
}

std::int64_t UnitGathers::root_parameters(int begin, int end) const {
  std::int64_t parameters = 0;
  for (int p = begin; p < end; ++p) parameters += is_unit(p) ? 0 : graph_.at(p).parameters;
  return parameters;
}

/// Kernels behind which so many units have been freed that the next may be gathered; -1: none.
std::int32_t UnitGathers::oldest_unfreed() const {
  const auto ahead = static_cast<std::size_t>(step_.data_parallel.units_ahead);
  if (ahead == 0 || frees_.size() < ahead) return -1;
  return frees_[frees_.size() - ahead];
}

std::int32_t UnitGathers::gather(std::int64_t parameters, const ScheduledPass& pass, int layer) {
  ProgramOp op;
  op.stream = StreamKind::data_comm;
  op.group = GroupKind::shard;
  op.phase = is_forward(pass) ? Phase::forward : Phase::backward;
  op.micro_batch = pass.micro_batch;
  op.layer = layer;
  op.waits = {oldest_unfreed(), -1};
  const std::int64_t held = element_bytes(step_.formats.parameters);
  const std::int64_t used = element_bytes(block_parameter_format(step_));
  if (held != used) {
    auto [cast, is_new] = casts_.try_emplace(parameters);
    if (is_new) {
      cast->second =
          library_.cut({buffer_pass("parameters.cast", Phase::forward, KernelKind::elementwise,
                                    shard_of(step_, parameters), {held, used})},
                       "parameters.cast");
    }
    op.segment = cast->second.front().segment;
    queue_.add(op);
    op.waits = {-1, -1};
  }
  op.kind = OpKind::all_gather;
  op.segment = {};
  op.bytes = op.allocated = gathered_bytes(parameters);
  return queue_.add(op);
}

void UnitGathers::gather(int position, const ScheduledPass& pass) {
  if (gathered_.contains(position)) return;
  const int layer = graph_.layer_numbers[static_cast<std::size_t>(position)];
  gathered_[position] = gather(graph_.at(position).parameters, pass, layer);
}

void UnitGathers::free(int position) {
  queue_.free(gathered_bytes(graph_.at(position).parameters));
  frees_.push_back(queue_.last_kernels());
  gathered_.erase(position);
}

void UnitGathers::begin_pass(const ScheduledPass& pass, int begin, int end) {
  if (!on_ || !is_forward(pass)) return;
  const std::int64_t parameters = root_parameters(begin, end);
  if (parameters == 0) return;
  if (root_users_[begin]++ == 0) root_[begin] = gather(parameters, pass, -1);
  queue_.await(root_.at(begin), library_.empty_segment());
}

void UnitGathers::end_pass(const ScheduledPass& pass, int begin, int end) {
  if (!on_ || is_forward(pass) || !reads_weights(pass)) return;
  const std::int64_t parameters = root_parameters(begin, end);
  if (parameters > 0 && --root_users_[begin] == 0) queue_.free(gathered_bytes(parameters));
}

void UnitGathers::before(int position, const ScheduledPass& pass, int next) {
  if (!on_ || !reads_weights(pass)) return;
  if (is_unit(position)) gather(position, pass);
  if (!is_forward(pass) && next >= 0 && is_unit(next)) gather(next, pass);
  if (!is_unit(position)) return;
  queue_.await(gathered_.at(position), library_.empty_segment());
  if (is_forward(pass)) ++users_[position];
}

void UnitGathers::after(int position, const ScheduledPass& pass) {
  if (!on_ || !reads_weights(pass) || !is_unit(position)) return;
  const bool kept = keeps_units(step_);
  if (kept && is_forward(pass)) return;
  if (kept && --users_[position] > 0) return;
  free(position);
}

}  // namespace tessera
