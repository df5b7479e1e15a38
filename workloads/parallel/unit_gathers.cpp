#include "workloads/parallel/unit_gathers.h"

#include "workloads/optimizers/multi_tensor.h"

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
      on_(gathers_units(step)),
      held_(element_bytes(step.formats.parameters)),
      used_(element_bytes(block_parameter_format(step))) {}

bool UnitGathers::is_unit(int position) const {
  return graph_.layer_numbers[static_cast<std::size_t>(position)] != kNoLayer;
}

ParameterParts UnitGathers::parts(int position) const {
  const Block& block = graph_.at(position);
  return parts_of(step_, block.parameters, spread_experts(step_, block));
}

ParameterParts UnitGathers::root_parts(int begin, int end) const {
  std::int64_t parameters = 0;
  for (int p = begin; p < end; ++p) parameters += is_unit(p) ? 0 : graph_.at(p).parameters;
  return parts_of(step_, parameters, 0);
}

bool UnitGathers::is_copied(const ParameterPart& part) const {
  return part.parameters > 0 && (part.ranks > 1 || held_ != used_);
}

Bytes UnitGathers::gathered_bytes(const ParameterParts& parts) const {
  std::int64_t elements = 0;
  for (const ParameterPart& part : parts.all()) elements += is_copied(part) ? part.parameters : 0;
  return Bytes(used_ * elements);
}

/// Kernels behind which so many units have been freed that the next may be gathered; -1: none.
std::int32_t UnitGathers::oldest_unfreed() const {
  const auto ahead = static_cast<std::size_t>(step_.data_parallel.units_ahead);
  if (ahead == 0 || frees_.size() < ahead) return -1;
  return frees_[frees_.size() - ahead];
}

SegmentId UnitGathers::cast_segment(std::int64_t elements) {
  auto [cast, is_new] = casts_.try_emplace(elements);
  if (is_new) {
    cast->second = library_.cut({buffer_pass("parameters.cast", Phase::forward,
                                             KernelKind::elementwise, elements, {held_, used_})},
                                "parameters.cast");
  }
  return cast->second.front().segment;
}

/// Casts the rank's shard of `part` and gathers it: gives the last op. `op` says what all have in
/// common, and what the first waits for and the last allocates.
std::int32_t UnitGathers::gather(const ParameterPart& part, ProgramOp op) {
  op.group = part.group;
  std::int32_t last = -1;
  if (held_ != used_) {
    ProgramOp cast = op;
    cast.segment = cast_segment(part.shard());
    if (part.ranks > 1) cast.allocated = Bytes(0);
    last = queue_.add(cast);
    op.waits = {-1, -1};
  }
  if (part.ranks == 1) return last;
  op.kind = OpKind::all_gather;
  op.bytes = Bytes(used_ * part.parameters);
  return queue_.add(op);
}

/// The parts of a unit one after the other, on one stream; -1: none is gathered.
std::int32_t UnitGathers::gather(const ParameterParts& parts, const ScheduledPass& pass,
                                 int layer) {
  ProgramOp op;
  op.stream = StreamKind::data_comm;
  op.phase = is_forward(pass) ? Phase::forward : Phase::backward;
  op.micro_batch = pass.micro_batch;
  op.layer = layer;
  op.waits = {oldest_unfreed(), -1};
  op.allocated = gathered_bytes(parts);
  std::int32_t last = -1;
  for (const ParameterPart& part : parts.all()) {
    if (!is_copied(part)) continue;
    last = gather(part, op);
    op.waits = {-1, -1};
    op.allocated = Bytes(0);
  }
  return last;
}

void UnitGathers::gather(int position, const ScheduledPass& pass) {
  if (gathered_.contains(position)) return;
  const int layer = graph_.layer_numbers[static_cast<std::size_t>(position)];
  gathered_[position] = gather(parts(position), pass, layer);
}

void UnitGathers::free(int position) {
  queue_.free(gathered_bytes(parts(position)));
  frees_.push_back(queue_.last_kernels());
  gathered_.erase(position);
}

void UnitGathers::await(std::int32_t gather) {
  if (gather >= 0) queue_.await(gather, library_.empty_segment());
}

void UnitGathers::begin_pass(const ScheduledPass& pass, int begin, int end) {
  if (!on_ || !is_forward(pass)) return;
  const ParameterParts root = root_parts(begin, end);
  if (!is_copied(root.dense)) return;
  if (root_users_[begin]++ == 0) root_[begin] = gather(root, pass, -1);
  await(root_.at(begin));
}

void UnitGathers::end_pass(const ScheduledPass& pass, int begin, int end) {
  if (!on_ || is_forward(pass) || !reads_weights(pass)) return;
  const ParameterParts root = root_parts(begin, end);
  if (is_copied(root.dense) && --root_users_[begin] == 0) queue_.free(gathered_bytes(root));
}

void UnitGathers::before(int position, const ScheduledPass& pass, int next) {
  if (!on_ || !reads_weights(pass)) return;
  if (is_unit(position)) gather(position, pass);
  if (!is_forward(pass) && next >= 0 && is_unit(next)) gather(next, pass);
  if (!is_unit(position)) return;
  await(gathered_.at(position));
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
