#include "workloads/parallel/stage_program.h"

#include <algorithm>
#include <utility>

#include "workloads/optimizers/multi_tensor.h"
#include "workloads/optimizers/optimizer_step.h"
#include "workloads/parallel/stage_builder.h"
#include "workloads/parallel/update/host_update.h"
#include "workloads/parallel/update/muon_update.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

/// A gradient norm.
constexpr Bytes kScalar(4);

void take_one(std::vector<std::int64_t>& from, std::int64_t value) {
  const auto found = std::ranges::find(from, value);
  if (found != from.end()) from.erase(found);
}

}  // namespace

void StageBuilder::count_memory() {
  Bytes buffers = graph_.shared_buffers;
  for (const StageBlocks& chunk : blocks_) {
    for (int position = chunk.begin; position < chunk.end; ++position) {
      program_.parameters += graph_.at(position).parameters;
      tensors_ += static_cast<int>(graph_.at(position).parameter_sizes.size());
      count_matrices(position);
      partial_parameters_ += graph_.at(position).partial_parameters;
      expert_parameters_ += graph_.at(position).expert_parameters;
      buffers += graph_.at(position).buffers + frozen_bytes(step_, graph_.at(position));
      cast_parameters_ += graph_.at(position).cast_parameters;
      if (gathers_fp8(step_))
        saved_by_fp8_shards_ += saved_by_fp8_shard(step_, graph_.at(position));
    }
  }
  program_.static_parts = persistent_parts(step_, program_.parameters, spread_experts());
  program_.static_parts[MemoryCategory::buffers] += buffers;
  deal();
  if (step_.optimizer == OptimizerKind::muon)
    program_.static_parts[MemoryCategory::optimizer] += second_moments(step_, updated_parameters());
  if (step_.formats.fp8_parameters)  // the copies are all there is
    program_.static_parts[MemoryCategory::parameters] -=
        Bytes(element_bytes(step_.formats.parameters) * cast_parameters_ + saved_by_fp8_shards_);
  program_.static_memory = program_.static_parts.total();
  if (step_.framework.moments_at_update && !offloads_update(step_))
    program_.made_by_update =
        program_.static_parts[MemoryCategory::optimizer] - Bytes(master_weights());
}

/// Bytes of what the optimizer updates, where that is no parameter of the model.
std::int64_t StageBuilder::master_weights() const {
  const bool has_states =
      step_.mode == StepMode::training && step_.optimizer != OptimizerKind::none;
  if (!has_states || !step_.formats.master_weights) return 0;
  constexpr std::int64_t kFp32 = 4;
  return kFp32 * shard_of(step_, program_.parameters, spread_experts());
}

/// Matrices of embedding, head and further predictions are Adam's.
void StageBuilder::count_matrices(int position) {
  if (!is_muon(step_.optimizer)) return;
  const Block& block = graph_.at(position);
  const bool is_layer = graph_.layer_numbers[static_cast<std::size_t>(position)] != kNoLayer;
  const std::vector<ParameterMatrices> own =
      is_layer ? matrices_of(block) : std::vector<ParameterMatrices>{};
  std::vector<std::int64_t> others = block.parameter_sizes;
  for (ParameterMatrices matrices : own) {
    for (std::int64_t tensors = matrices.tensors; tensors > 0; --tensors)
      take_one(others, matrices.elements() / matrices.tensors);
    matrices.experts = matrices.experts && step_.layout.experts_apart();
    add_matrices(matrices, matrices_);
  }
  other_tensors_.insert(other_tensors_.end(), others.begin(), others.end());
}

/// Who updates what, where replicas divide the tensors among themselves.
void StageBuilder::deal() {
  if (step_.optimizer != OptimizerKind::dist_muon || step_.mode != StepMode::training) return;
  program_.static_parts[MemoryCategory::optimizer] = Bytes(0);
  for (DealtTensors& dealt : deal_tensors(step_, matrices_, other_tensors_)) {
    program_.static_parts[MemoryCategory::optimizer] += dealt.states;
    dealt_.push_back(std::move(dealt));
  }
}

UpdatedParameters StageBuilder::updated_parameters() const {
  if (!dealt_.empty()) {
    UpdatedParameters updated;
    for (const DealtTensors& dealt : dealt_) {
      updated.parameters += dealt.own();
      updated.matrices += dealt.matrix_elements();
      updated.tensors += static_cast<int>(dealt.tensors);
    }
    updated.summed = updated.parameters;
    return updated;
  }
  const std::int64_t own = shard_of(step_, program_.parameters, spread_experts());
  const bool whole = step_.data_parallel.whole_sums;
  return {.parameters = own,
          .summed = whole ? program_.parameters : own,
          .tensors = tensors_,
          .matrices = own_matrices(step_, matrices_)};
}

/// DualPipe's two copies of a part of the model lie on stages that mirror each other: they exchange
/// the gradients of `parameters` and add them.
void StageBuilder::join_copies(std::int64_t parameters) {
  const std::int64_t bytes = element_bytes(step_.formats.reduce);
  StageMessage copy;
  copy.phase = Phase::gradient_reduction;
  copy.peer_stage = stages_ - 1 - stage_;
  constexpr int kMessagesAtMost = 34;  // of a pass: two tensors behind 16 headers each
  copy.tag = 2 * static_cast<int>(step_.micro_batches()) * pipeline_.length() * kMessagesAtMost;
  copy.micro_batch = -1;
  copy.bytes = Bytes(bytes * parameters);
  queue_.send(copy);
  queue_.await_message(queue_.receive(copy));
  run_ops({buffer_pass("gradients.join", Phase::gradient_reduction, KernelKind::elementwise,
                       parameters, {2 * bytes, bytes})},
          "gradients.join");
}

void StageBuilder::reduce_gradients() {
  const std::int64_t kept = shard_of(step_, program_.parameters, spread_experts());
  const bool divided = kept < program_.parameters;  // then the copies exchange what each rank keeps
  if (pipeline_.two_way() && !divided) join_copies(program_.parameters);
  gradients_.finish(program_.parameters, spread_experts());
  if (pipeline_.two_way() && divided) join_copies(kept);
  if (partial_parameters_ > 0) {
    const Bytes bytes(element_bytes(step_.formats.gradients) * partial_parameters_);
    queue_.collective(OpKind::all_reduce, GroupKind::tensor, Phase::gradient_reduction, bytes);
  }
  const bool has_tied_table = stage_ == 0 || stage_ == stages_ - 1;
  if (stages_ > 1 && has_tied_table && graph_.tied_table_bytes.value() > 0) {
    queue_.collective(OpKind::all_reduce, GroupKind::embedding, Phase::gradient_reduction,
                      graph_.tied_table_bytes);
  }
}

/// A number per rank of the model: the norm, or whether a gradient overflowed. Megatron's host
/// reads it.
void StageBuilder::reduce_scalar() {
  std::vector<GroupKind> groups;
  const bool divided = shard_ranks(step_) > 1 && !step_.data_parallel.whole_sums;
  if (divided) groups.push_back(GroupKind::shard);
  if (!dealt_.empty() && step_.layout.replicas() > 1) groups.push_back(GroupKind::data);
  if (step_.layout.tensor > 1) groups.push_back(GroupKind::tensor);
  if (stages_ > 1) groups.push_back(GroupKind::pipeline);
  const FrameworkProfile& profile = step_.framework;
  const bool host_reads = profile.reads_norm ||
                          (profile.modules == ModuleTree::megatron && !profile.per_tensor_updates);
  for (const GroupKind group : groups) {
    queue_.collective(OpKind::all_reduce, group, Phase::optimizer, kScalar,
                      host_reads && group == groups.back());
  }
}

void StageBuilder::update(const OptimizerStep& optimizer) {
  run_ops(optimizer.unscale, "gradients.unscale");
  if (!optimizer.unscale.empty()) reduce_scalar();
  run_ops(optimizer.norm, "clip.norm");
  if (!optimizer.norm.empty()) reduce_scalar();
  run_ops(optimizer.update, "optimizer");
  if (is_muon(step_.optimizer)) update_by_muon(optimizer);
}

void StageBuilder::update_by_muon(const OptimizerStep& optimizer) {
  MuonUpdate muon(library_, step_, queue_);
  if (dealt_.empty()) muon.run(matrices_);
  for (const DealtTensors& dealt : dealt_) muon.run(dealt.matrices);
  run_ops(optimizer.apply, "optimizer.apply");
  for (const DealtTensors& dealt : dealt_) gather_dealt(library_, step_, queue_, dealt);
}

/// Norms are taken of gradients as they leave; kernels of a number each are not counted.
void StageBuilder::update_on_host() {
  if (step_.clip_gradients) reduce_scalar();
  HostUpdate(library_, step_, queue_)
      .run(shard_of(step_, program_.parameters, spread_experts()), gradients_.last());
}

RankProgram StageBuilder::build() && {
  count_memory();
  for (const StageBlocks& chunk : blocks_) {
    const bool first = stage_ == 0 && &chunk == &blocks_.front();
    const auto buckets = gradient_buckets(graph_, step_, chunk.begin, chunk.end, first);
    gradients_.add_chunk(chunk.begin, chunk.end, buckets);
    updates_.add_chunk(chunk.begin, buckets);
  }
  OptimizerStep optimizer;  // of what this rank updates
  if (step_.mode == StepMode::training) {
    optimizer = optimizer_step(step_, updated_parameters());
    const bool whole_buffers = !scatters_gradients(step_);
    const bool on_host = offloads_update(step_) && !whole_buffers;
    if (!on_host)
      run_ops(whole_buffers ? optimizer_step(step_, program_.parameters).before_forward
                            : optimizer.before_forward,
              "gradients.zero");
  }
  run_passes();
  if (step_.mode == StepMode::training) {
    reduce_gradients();
    program_.update_begin = queue_.size();
    if (offloads_update(step_)) {
      update_on_host();
    } else {
      update(optimizer);
    }
    updates_.finish(program_.parameters, spread_experts(), tensors_);
    units_.find_scales(shard_of(step_, program_.parameters, spread_experts()), tensors_);
  }
  program_.ops = std::move(queue_).finish();
  program_.stage = stage_;
  return std::move(program_);
}

Program build_stages(const ModelGraph& graph, const StepOptions& step,
                     const std::vector<int>& stages,
                     const std::vector<std::int64_t>& micro_batches) {
  Program program;
  program.layout = step.layout;
  program.layout.shard = shard_ranks(step);
  program.tokens = graph.tokens;
  PassLibrary library(graph, program.segments, step.segment_per_call);
  const auto add_stages = [&](const StepOptions& of) {
    for (const int stage : stages)
      program.stages.push_back(StageBuilder(library, of, stage).build());
  };
  if (micro_batches.empty()) add_stages(step);
  for (const std::int64_t count : micro_batches) add_stages(with_micro_batches(step, count));
  return program;
}

}  // namespace tessera
