#include "workloads/parallel/gradient_reduction.h"

#include <utility>

#include "workloads/optimizers/multi_tensor.h"

namespace tessera {
namespace {

GraphOp shard_pass(const char* name, std::int64_t elements, PassTraffic traffic) {
  return buffer_pass(name, Phase::gradient_reduction, KernelKind::elementwise, elements, traffic);
}

}  // namespace

GradientReduction::GradientReduction(PassLibrary& library, const StepOptions& step, int stage,
                                     OpQueue& queue)
    : library_(library),
      graph_(library.graph()),
      step_(step),
      stage_(stage),
      queue_(queue),
      scatters_(scatters_gradients(step)),
      overlaps_(!scatters_ && step.layout.replicas() > 1 && step.data_parallel.overlap_gradients &&
                !(step.data_parallel.whole_sums && shard_ranks(step) > 1) &&
                step.schedule != PipelineSchedule::dualpipe && step.mode == StepMode::training),
      aligns_(overlaps_ && step.data_parallel.align_gradients && step.layout.pipeline > 1 &&
              (stage > 0 || step.schedule == PipelineSchedule::interleaved_1f1b)),
      holds_until_added_(!scatters_ && step.framework.per_tensor_updates &&
                         step.mode == StepMode::training &&
                         step.formats.gradients != step.formats.parameters),
      gradient_(element_bytes(block_gradient_format(step))),
      summed_(element_bytes(step.formats.reduce)),
      kept_(element_bytes(step.formats.gradients)) {}

void GradientReduction::add_chunk(int begin, int end, const std::vector<GradientBucket>& buckets) {
  chunks_.push_back({.begin = begin, .end = end});
  if (overlaps_) chunks_.back().buckets = buckets;
}

GradientReduction::Chunk& GradientReduction::chunk_of(int position) {
  std::size_t chunk = 0;
  while (position < chunks_[chunk].begin || position >= chunks_[chunk].end) ++chunk;
  return chunks_[chunk];
}

bool GradientReduction::stores(const Turn& turn) const {
  if (step_.mode != StepMode::training) return false;
  if (scatters_ && step_.data_parallel.reduce_each_micro_batch) return true;
  const bool casts = scatters_ && gradient_ != element_bytes(activation_precision(step_.precision));
  return !casts && turn.first && (scatters_ || step_.framework.gradients_set_to_none);
}

ParameterParts GradientReduction::parts(int position) const {
  const Block& block = graph_.at(position);
  return parts_of(step_, block.parameters, spread_experts(step_, block));
}

bool GradientReduction::leaves_copy(const ParameterPart& part, const Turn& turn) const {
  return part.parameters > 0 &&
         (part.replicas > 1 || gradient_ != kept_ || adds(turn) || offloads_update(step_));
}

/// Backward leaves its gradients in memory that lives until they are scattered. While one unit's
/// are on their way, those of one more may be made: compute waits for the unit before.
/// Source: PyTorch, distributed/fsdp/_fully_shard/_fsdp_param_group.py, post_backward(); DeepSpeed,
/// runtime/zero/stage_1_and_2.py, two buckets of which one is reduced.
void GradientReduction::before(int position, const ScheduledPass& pass, const Turn& turn) {
  queue_.allocate(Bytes(made_));
  held_ += std::exchange(made_, 0);
  if (!scatters_ || pass.direction == PassDirection::forward ||
      pass.direction == PassDirection::input_gradient)
    return;
  if (left_ >= 0) queue_.await(std::exchange(left_, -1), library_.empty_segment());
  if (!turn.first && !step_.data_parallel.reduce_each_micro_batch) return;
  for (const ParameterPart& part : parts(position).all())
    if (leaves_copy(part, turn)) queue_.allocate(Bytes(gradient_ * part.parameters));
}

/// The root unit's gradients leave together, behind its block that backward runs last.
bool GradientReduction::waits_for_root(const Chunk& chunk, int position) const {
  const auto is_root = [&](int p) {
    return graph_.layer_numbers[static_cast<std::size_t>(p)] == kNoLayer;
  };
  if (!gathers_units(step_) || !is_root(position)) return false;
  for (int p = chunk.begin; p < position; ++p) {
    if (is_root(p)) return true;
  }
  return false;
}

void GradientReduction::after(int position, const ScheduledPass& pass, const Turn& turn) {
  if (pass.direction == PassDirection::forward || pass.direction == PassDirection::input_gradient)
    return;
  if (holds_until_added_)
    made_ = element_bytes(step_.formats.parameters) * graph_.at(position).parameters;
  Chunk& chunk = chunk_of(position);
  if (scatters_) {
    if (!turn.last && !step_.data_parallel.reduce_each_micro_batch) return;
    ParameterParts leaving = parts(position);
    if (waits_for_root(chunk, position)) {
      chunk.root += leaving.dense.parameters;
      return;
    }
    const bool unit = graph_.layer_numbers[static_cast<std::size_t>(position)] != kNoLayer;
    if (!unit) leaving.dense.parameters += std::exchange(chunk.root, 0);
    scatter(leaving, pass, turn);
    return;
  }
  if (!turn.last || aligns_) return;
  for (const GradientBucket& bucket : chunk.buckets) {
    if (bucket.ready == position) reduce(bucket);
  }
}

void GradientReduction::end_pass(const ScheduledPass& pass, const Turn& turn) {
  if (held_ > 0) queue_.free(Bytes(std::exchange(held_, 0)));
  made_ = 0;
  if (!aligns_ || step_.schedule != PipelineSchedule::interleaved_1f1b) return;
  if (turn.last) chunks_[static_cast<std::size_t>(pass.chunk)].due = stage_;
  for (Chunk& chunk : chunks_) {
    if (chunk.due == 0) reduce_all(chunk);
    if (chunk.due > 0) --chunk.due;
  }
}

void GradientReduction::reduce_all(Chunk& chunk) {
  for (const GradientBucket& bucket : chunk.buckets) reduce(bucket);
  chunk.buckets.clear();
  chunk.due = -1;
}

void GradientReduction::reduce(const GradientBucket& bucket) {
  run(optimizer_step(step_, bucket.parameters).average, "gradients.average");
  if (bucket.experts) return reduce_experts(bucket.parameters);
  reduce(bucket.parameters);
}

ProgramOp GradientReduction::collective(OpKind kind, GroupKind group, Bytes bytes) const {
  ProgramOp op;
  op.kind = kind;
  op.group = group;
  op.stream = group == GroupKind::replica ? StreamKind::replica_comm : StreamKind::data_comm;
  op.phase = Phase::gradient_reduction;
  op.bytes = bytes;
  return op;
}

/// Sums of what the compute stream made last.
void GradientReduction::reduce(std::int64_t parameters) {
  if (step_.layout.replicas() == 1) return;
  const int ranks = step_.data_parallel.whole_sums ? 1 : shard_ranks(step_);
  const Bytes bytes(summed_ * parameters);
  ProgramOp op = ranks > 1 ? collective(OpKind::reduce_scatter, GroupKind::shard, bytes)
                           : collective(OpKind::all_reduce, GroupKind::data, bytes);
  op.waits = {queue_.last_kernels(), -1};
  last_ = queue_.add(op);
  if (ranks == 1 || ranks == step_.layout.replicas()) return;
  op = collective(OpKind::all_reduce, GroupKind::replica,
                  Bytes(summed_ * shard_of(step_, parameters)));
  op.waits = {last_, -1};
  last_replica_ = queue_.add(op);
}

/// One kernel on a communication stream, behind what that stream did before.
void GradientReduction::run_kernels(const GraphOp& graph_op, GroupKind group, int micro_batch,
                                    Bytes freed, std::int32_t after) {
  auto [cut, is_new] = kernels_.try_emplace({graph_op.name, graph_op.kernel.bytes().value()});
  if (is_new) cut->second = library_.cut({graph_op}, graph_op.name);
  ProgramOp op = collective(OpKind::kernels, group, Bytes(0));
  op.segment = cut->second.front().segment;
  op.micro_batch = micro_batch;
  op.freed = freed;
  const bool between_groups = group == GroupKind::replica;
  op.waits = {between_groups ? -1 : queue_.last_kernels(), after};
  (between_groups ? last_replica_ : last_) = queue_.add(op);
}

void GradientReduction::scatter(const ParameterParts& unit, const ScheduledPass& pass,
                                const Turn& turn) {
  const std::int32_t before = last_;
  for (const ParameterPart& part : {unit.experts, unit.dense})
    if (part.parameters > 0) scatter(part, pass, turn);
  if (last_ == before) return;
  left_ = leaving_;
  leaving_ = last_;
}

void GradientReduction::scatter(const ParameterPart& part, const ScheduledPass& pass,
                                const Turn& turn) {
  const Bytes left(leaves_copy(part, turn) ? gradient_ * part.parameters : 0);
  ShardSum sum{.elements = part.shard(),
               .summed = gradient_,
               .group = part.group,
               .micro_batch = pass.micro_batch,
               .freed = left};
  if (part.replicas == 1) return accumulate(sum, turn);
  const Bytes copied(summed_ * part.parameters);
  queue_.allocate(copied);
  run_kernels(shard_pass("gradients.copy_in", part.parameters, {gradient_, summed_}), part.group,
              pass.micro_batch);
  ProgramOp op =
      collective(part.ranks > 1 ? OpKind::reduce_scatter : OpKind::all_reduce, part.group, copied);
  op.micro_batch = pass.micro_batch;
  sum.summed = summed_;
  sum.reduced = true;
  sum.freed = Bytes(offloads_update(step_) ? summed_ * part.shard() : 0);
  op.freed = copied + left - sum.freed;
  last_ = queue_.add(op);
  if (part.ranks > 1 && part.ranks < part.replicas) {
    op = collective(OpKind::all_reduce, GroupKind::replica, Bytes(summed_ * part.shard()));
    op.micro_batch = pass.micro_batch;
    op.waits = {last_, -1};
    last_replica_ = queue_.add(op);
    sum.group = GroupKind::replica;
  }
  accumulate(sum, turn);
}

void GradientReduction::accumulate(const ShardSum& sum, const Turn& turn) {
  if (offloads_update(step_)) return move_to_host(sum, turn);
  const auto run = [&](const char* name, PassTraffic traffic) {
    run_kernels(shard_pass(name, sum.elements, traffic), sum.group, sum.micro_batch, sum.freed);
  };
  if (adds(turn)) {
    run("gradients.accumulate", {sum.summed + kept_, kept_});
  } else if (sum.summed != kept_) {
    run("gradients.cast_back", {sum.summed, kept_});
  }
}

void GradientReduction::run(const std::vector<GraphOp>& ops, const std::string& name) {
  if (ops.empty()) return;
  auto [cut, is_new] = kernels_.try_emplace({name, ops.front().kernel.bytes().value()});
  if (is_new) cut->second = library_.cut(ops, name);
  queue_.run(cut->second, -1, -1);
}

void GradientReduction::reduce_experts(std::int64_t experts) {
  if (experts == 0 || step_.layout.expert_replicas() == 1) return;
  const OpKind kind = expert_shard_ranks(step_) > 1 ? OpKind::reduce_scatter : OpKind::all_reduce;
  ProgramOp op = collective(kind, GroupKind::expert_data, Bytes(summed_ * experts));
  op.waits = {queue_.last_kernels(), -1};
  last_ = queue_.add(op);
}

void GradientReduction::finish(std::int64_t parameters, std::int64_t experts) {
  if (!scatters_) {
    const OptimizerStep whole = optimizer_step(step_, parameters);
    if (!overlaps_) {
      run(whole.average, "gradients.average");
      reduce(parameters - experts);
      reduce_experts(experts);
    }
    if (aligns_) {
      for (Chunk& chunk : chunks_) reduce_all(chunk);
    }
  }
  for (const std::int32_t op : {last_, last_replica_}) {
    if (op >= 0) queue_.await(op, library_.empty_segment());
  }
  if (scatters_) return;
  run(optimizer_step(step_, shard_of(step_, parameters, experts)).after_reduce,
      "gradients.cast_back");
}

}  // namespace tessera
