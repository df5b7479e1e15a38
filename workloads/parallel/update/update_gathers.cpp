#include "workloads/parallel/update/update_gathers.h"

#include <cmath>
#include <iterator>

#include "workloads/optimizers/multi_tensor.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

/// What `launches` without modules and autograd take the host, in framework calls.
int as_framework_calls(std::int64_t launches, const FrameworkProfile& framework) {
  if (framework.host_per_call <= Seconds()) return 0;
  const double share = framework.host_per_compiled_call / framework.host_per_call;
  return static_cast<int>(std::llround(share * static_cast<double>(launches)));
}

}  // namespace

UpdateGathers::UpdateGathers(PassLibrary& library, const StepOptions& step, int stage,
                             OpQueue& queue)
    : library_(library),
      step_(step),
      stage_(stage),
      queue_(queue),
      on_(gathers_updates(step)),
      overlaps_(on_ && step.data_parallel.overlap_parameters),
      aligns_(overlaps_ && step.data_parallel.align_parameters) {}

void UpdateGathers::add_chunk(int begin, const std::vector<GradientBucket>& buckets) {
  if (!overlaps_) return;
  Chunk& chunk = gathers_[begin];
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    const int ranks = bucket->experts ? expert_shard_ranks(step_) : shard_ranks(step_);
    if (ranks > 1) chunk[bucket->experts ? 1 : 0].push_back({*bucket, -1});
  }
}

/// Weights that are held in FP8 travel in it, but under MXFP8, whose two orders have scales of
/// their own: those travel in 16 bits, through the buffer of gradients (Megatron-Core,
/// reuse_grad_buf_for_mxfp8_param_ag). The share of such weights is the model's.
Bytes UpdateGathers::gathered(std::int64_t parameters) const {
  const std::int64_t held = element_bytes(step_.formats.parameters) * parameters;
  const bool shorter =
      step_.formats.fp8_parameters && step_.framework.fp8_scaling != Fp8Scaling::mxfp8;
  if (!shorter) return Bytes(held);
  const ModelGraph& graph = library_.graph();
  std::int64_t cast = 0;
  for (int position = 0; position < std::ssize(graph.order); ++position)
    cast += graph.at(position).cast_parameters;
  const double share = static_cast<double>(cast) / static_cast<double>(graph.parameters());
  return Bytes(held - std::llround(share * static_cast<double>(parameters)));
}

std::int32_t UpdateGathers::start(GroupKind group, std::int64_t parameters, Phase phase) {
  ProgramOp op;
  op.kind = OpKind::all_gather;
  op.group = group;
  op.stream = StreamKind::data_comm;
  op.phase = phase;
  op.bytes = gathered(parameters);
  if (phase == Phase::optimizer) op.waits = {queue_.last_kernels(), -1};
  return queue_.add(op);
}

void UpdateGathers::start(Gather& gather) {
  const GroupKind group = gather.bucket.experts ? GroupKind::expert_data : GroupKind::shard;
  if (gather.op < 0) gather.op = start(group, gather.bucket.parameters, Phase::forward);
}

void UpdateGathers::start_chunk(int chunk) {
  if (chunk >= static_cast<int>(gathers_.size())) return;
  for (auto& kind : std::next(gathers_.begin(), chunk)->second)
    for (Gather& gather : kind) start(gather);
}

/// Stages that wait for their first message gather meanwhile.
/// Source: Megatron-Core optimizer/distrib_optimizer.py, zero_grad() starts the first gather, of
/// experts and of the rest, which have an optimizer each;
/// aligned: pipeline_parallel/schedules.py, param_sync_func of the first two chunks.
void UpdateGathers::begin() {
  if (aligns_) {
    start_chunk(0);
    start_chunk(1);
  } else if (!gathers_.empty()) {
    for (auto& kind : gathers_.begin()->second)
      if (!kind.empty()) start(kind.front());
  }
}

/// Stage s runs its k-th forward pass while the first stage runs its (k + s)-th: then all stages
/// gather the chunk behind the one that the first stage begins.
/// Source: Megatron-Core pipeline_parallel/schedules.py, forward_step_helper (param_sync_func).
void UpdateGathers::begin_pass(const ScheduledPass& pass) {
  if (!aligns_ || !is_forward(pass)) return;
  const int of_first_stage = forward_passes_++ + stage_;
  const int stages = step_.layout.pipeline;
  if (of_first_stage % stages == 0) start_chunk(of_first_stage / stages + 1);
}

void UpdateGathers::before(int position, const ScheduledPass& pass) {
  if (!overlaps_ || pass.direction != PassDirection::forward) return;
  for (std::vector<Gather>& kind : std::prev(gathers_.upper_bound(position))->second)
    await(position, kind);
}

void UpdateGathers::await(int position, std::vector<Gather>& gathers) {
  std::int32_t needed = -1;
  for (std::size_t i = 0; i < gathers.size(); ++i) {
    Gather& gather = gathers[i];
    if (gather.bucket.ready > position) break;
    const bool passed = gather.op >= 0 && gather.bucket.first < position;
    if (passed) continue;
    start(gather);
    needed = gather.op;
    if (i + 1 < gathers.size()) start(gathers[i + 1]);
  }
  if (needed >= 0) queue_.await(needed, library_.empty_segment());
}

/// Every rank's part of every tensor becomes a tensor of its own (an empty one, set to the
/// storage); the own parts are flattened behind each other, gathered into one new piece, and copied
/// back part by part in a loop of C++. Sources: nanotron optim/zero.py, _all_gather_params;
/// distributed.py, all_gather_coalesced; torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp,
/// allgather(), which makes the piece (newLikeFlat; recalled). What a part takes:
/// docs/decisions/0071.
void UpdateGathers::gather_lists(std::int64_t parameters, int tensors) {
  const std::int64_t format = element_bytes(step_.formats.parameters);
  const int ranks = shard_ranks(step_);
  const std::int64_t part = (parameters + ranks - 1) / ranks;
  GraphOp flatten = buffer_pass("parameters.flatten", Phase::optimizer, KernelKind::elementwise,
                                part, {format, format});
  const int calls_of_parts = as_framework_calls(std::int64_t{tensors} * ranks, step_.framework);
  flatten.host_calls = tensors + calls_of_parts;
  flatten.allocated = Bytes(format * part);
  queue_.run(library_.cut({flatten}, "parameters.flatten"), -1, -1);
  queue_.allocate(Bytes(format * parameters));
  queue_.await(start(GroupKind::shard, parameters, Phase::optimizer), library_.empty_segment());
  GraphOp unflatten = buffer_pass("parameters.unflatten", Phase::optimizer, KernelKind::elementwise,
                                  parameters, {format, format});
  unflatten.host_calls = calls_of_parts;
  unflatten.freed = flatten.allocated;
  queue_.run(library_.cut({unflatten}, "parameters.unflatten"), -1, -1);
  queue_.free(Bytes(format * parameters));
}

void UpdateGathers::finish(std::int64_t parameters, std::int64_t experts, int tensors) {
  if (!on_ || overlaps_) return;
  const bool lists = step_.framework.gathers_lists && experts == 0 && shard_ranks(step_) > 1;
  if (lists) return gather_lists(parameters, tensors);
  if (shard_ranks(step_) > 1) start(GroupKind::shard, parameters - experts, Phase::optimizer);
  if (experts > 0 && expert_shard_ranks(step_) > 1)
    start(GroupKind::expert_data, experts, Phase::optimizer);
}

}  // namespace tessera
