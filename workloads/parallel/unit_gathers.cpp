#include "workloads/parallel/unit_gathers.h"

#include "workloads/optimizers/multi_tensor.h"

namespace tessera {
namespace {

/// Weight gradients alone need no weights.
bool reads_weights(const ScheduledPass& pass) {
  return pass.direction != PassDirection::weight_gradient;
}

/// Elements; what is frozen is gathered with what is trained beside it (fully_shard's groups).
std::int64_t gathered(const Block& block) {
  return block.parameters + block.frozen_parameters;
}

}  // namespace

UnitGathers::UnitGathers(PassLibrary& library, const StepOptions& step, OpQueue& queue)
    : library_(library),
      graph_(library.graph()),
      step_(step),
      queue_(queue),
      on_(gathers_units(step)),
      fetches_(offloads_parameters(step)),
      holds_(holds_units(step)),
      held_(element_bytes(step.formats.parameters)),
      used_(element_bytes(block_parameter_format(step))) {}

bool UnitGathers::is_unit(int position) const {
  return graph_.layer_numbers[static_cast<std::size_t>(position)] != kNoLayer;
}

UnitGathers::Unit UnitGathers::unit(int position) const {
  const Block& block = graph_.at(position);
  return {parts_of(step_, gathered(block), spread_experts(step_, block)), block.fp8_parameters};
}

UnitGathers::Unit UnitGathers::root_unit(int begin, int end) const {
  std::int64_t parameters = 0;
  for (int p = begin; p < end; ++p) parameters += is_unit(p) ? 0 : gathered(graph_.at(p));
  return {parts_of(step_, parameters, 0)};
}

bool UnitGathers::is_copied(const ParameterPart& part) const {
  return part.parameters > 0 && (part.ranks > 1 || held_ != used_ || fetches_);
}

Bytes UnitGathers::gathered_bytes(const Unit& unit) const {
  std::int64_t elements = 0;
  for (const ParameterPart& part : unit.parts.all())
    elements += is_copied(part) ? part.parameters : 0;
  return Bytes(used_ * elements - (used_ - 1) * unit.fp8);
}

/// Kernels behind which so many units have been freed that the next may be gathered; -1: none.
std::int32_t UnitGathers::oldest_unfreed() const {
  const auto ahead = static_cast<std::size_t>(step_.data_parallel.units_ahead);
  if (ahead == 0 || frees_.size() < ahead) return -1;
  return frees_[frees_.size() - ahead];
}

const Pass& UnitGathers::pass_over(const char* name, std::int64_t elements, PassTraffic traffic) {
  auto [pass, is_new] = passes_.try_emplace({name, elements});
  if (is_new) {
    const GraphOp op =
        buffer_pass(name, Phase::forward, KernelKind::elementwise, elements, traffic);
    pass->second = library_.cut({op}, name);
  }
  return pass->second;
}

/// Of the rank's shard, to the formats that kernels read: gives the last op.
std::int32_t UnitGathers::cast(const ParameterPart& part, std::int64_t fp8, const ProgramOp& op) {
  ProgramOp cast = op;
  const std::int64_t narrow = fp8 / part.ranks;
  cast.segment =
      pass_over("parameters.cast", part.shard() - narrow, {held_, used_}).front().segment;
  if (part.ranks > 1) cast.allocated = Bytes(0);
  const Bytes fetched = fetches_ ? fetched_bytes(part) : Bytes(0);
  cast.freed = narrow == 0 ? fetched : Bytes(0);
  const std::int32_t wide = queue_.add(cast);
  if (narrow == 0) return wide;
  cast.segment = pass_over("parameters.cast_fp8", narrow, {held_, 1}).front().segment;
  cast.waits = {-1, -1};
  cast.allocated = Bytes(0);
  cast.freed = fetched;
  return queue_.add(cast);
}

/// The shard, as the host holds it; what kernels read, where it needs neither cast nor gather.
std::int32_t UnitGathers::fetch(const ParameterPart& part, ProgramOp op) {
  op.kind = OpKind::copy_in;
  op.stream = StreamKind::host_to_device;
  op.bytes = fetched_bytes(part);
  if (!is_fetched_in_place(part)) op.allocated = op.bytes;
  return queue_.add(op);
}

/// Casts the rank's shard of `part` and gathers it: gives the last op. `op` says what all have in
/// common, and what the first waits for and the last allocates.
std::int32_t UnitGathers::gather(const ParameterPart& part, std::int64_t fp8, ProgramOp op) {
  std::int32_t last = -1;
  if (fetches_) {
    last = fetch(part, op);
    op.waits = {last, -1};
  }
  op.group = part.group;
  if (held_ != used_) {
    last = cast(part, fp8, op);
    op.waits = {-1, -1};
  } else if (fetches_ && part.ranks > 1) {
    op.freed = fetched_bytes(part);
  }
  if (part.ranks == 1) return last;
  op.kind = OpKind::all_gather;
  op.bytes = Bytes(used_ * part.parameters - (used_ - 1) * fp8);
  return queue_.add(op);
}

/// The parts of a unit one after the other, on one stream; -1: none is gathered.
std::int32_t UnitGathers::gather(const Unit& unit, const ScheduledPass& pass, int layer) {
  ProgramOp op;
  op.stream = StreamKind::data_comm;
  op.phase = is_forward(pass) ? Phase::forward : Phase::backward;
  op.micro_batch = pass.micro_batch;
  op.layer = layer;
  op.waits = {oldest_unfreed(), -1};
  op.allocated = gathered_bytes(unit);
  std::int32_t last = -1;
  for (const ParameterPart& part : unit.parts.all()) {
    if (!is_copied(part)) continue;
    last = gather(part, part.group == GroupKind::shard ? unit.fp8 : 0, op);
    op.waits = {-1, -1};
    op.allocated = Bytes(0);
  }
  return last;
}

void UnitGathers::gather(int position, const ScheduledPass& pass) {
  if (gathered_.contains(position)) return;
  const int layer = graph_.layer_numbers[static_cast<std::size_t>(position)];
  gathered_[position] = gather(unit(position), pass, layer);
  arriving_.insert(position);
}

/// The buffer is there until the copy is through.
void UnitGathers::copy_out(const Unit& unit, const ScheduledPass& pass, int layer) {
  const bool gathered = unit.parts.dense.ranks > 1;
  if (!step_.framework.copies_gathered || !gathered) return;
  const Bytes bytes = gathered_bytes(unit);
  queue_.allocate(bytes);
  queue_.run(pass_over("parameters.copy_out", bytes.value(), {1, 1}), pass.micro_batch, layer);
  queue_.free(bytes);
}

void UnitGathers::free(int position) {
  queue_.free(gathered_bytes(unit(position)));
  frees_.push_back(queue_.last_kernels());
  gathered_.erase(position);
}

void UnitGathers::await(std::int32_t gather) {
  if (gather >= 0) queue_.await(gather, library_.empty_segment());
}

void UnitGathers::begin_pass(const ScheduledPass& pass, int begin, int end) {
  if (!on_ || !is_forward(pass)) return;
  const Unit root = root_unit(begin, end);
  if (!is_copied(root.parts.dense)) return;
  const bool first = holds_ ? !root_.contains(begin) : root_users_[begin]++ == 0;
  if (first) root_[begin] = gather(root, pass, -1);
  await(root_.at(begin));
  if (first) copy_out(root, pass, -1);
  if (first && holds_) root_users_[begin] = static_cast<int>(step_.micro_batches());
}

void UnitGathers::end_pass(const ScheduledPass& pass, int begin, int end) {
  if (!on_ || is_forward(pass) || !reads_weights(pass)) return;
  const Unit root = root_unit(begin, end);
  if (is_copied(root.parts.dense) && --root_users_[begin] == 0) queue_.free(gathered_bytes(root));
}

void UnitGathers::before(int position, const ScheduledPass& pass, int next) {
  if (!on_ || !reads_weights(pass)) return;
  if (is_unit(position)) gather(position, pass);
  if (!is_forward(pass) && next >= 0 && is_unit(next)) gather(next, pass);
  if (!is_unit(position)) return;
  await(gathered_.at(position));
  if (arriving_.erase(position) > 0)
    copy_out(unit(position), pass, graph_.layer_numbers[static_cast<std::size_t>(position)]);
  if (is_forward(pass)) ++users_[position];
}

void UnitGathers::find_scales(std::int64_t own, int tensors) {
  if (!gathers_fp8(step_) || step_.framework.fp8_scaling == Fp8Scaling::mxfp8) return;
  constexpr const char* kName = "parameters.largest";
  const GraphOp op = multi_tensor_pass(kName, Phase::optimizer, own, {held_, 0}, 1);
  queue_.run(library_.cut({op}, kName), -1, -1);
  queue_.collective(OpKind::all_reduce, GroupKind::shard, Phase::optimizer,
                    Bytes(element_bytes(Precision::fp32) * tensors));
}

/// Passes that read a unit, kept for them, are its users until their backward is through; of held
/// ones every micro-batch's is.
void UnitGathers::after(int position, const ScheduledPass& pass) {
  if (!on_ || !reads_weights(pass) || !is_unit(position)) return;
  const bool kept = keeps_units(step_);
  if (kept && is_forward(pass)) return;
  if (holds_) {
    if (++backwards_[position] == step_.micro_batches()) free(position);
    return;
  }
  if (kept && --users_[position] > 0) return;
  free(position);
}

}  // namespace tessera
