#pragma once

#include <array>
#include <cstdint>

#include "workloads/graph/block.h"
#include "workloads/memory/memory_bytes.h"
#include "workloads/step_options.h"

namespace tessera {

// What a step's sharding comes to. One rank per shard group is no sharding at all.

/// Ranks that divide one copy of what is sharded; 1 where nothing is.
int shard_ranks(const StepOptions& step);
/// Ranks that divide one copy of experts that are spread over ranks; 1 where nothing is.
int expert_shard_ranks(const StepOptions& step);

/// Parameters that the same ranks hold, and divide where they are sharded.
struct ParameterPart {
  GroupKind group = GroupKind::shard;  ///< of the ranks that divide them
  std::int64_t parameters = 0;
  int ranks = 1;     ///< that divide one copy; 1: each holds them whole
  int replicas = 1;  ///< that sum their gradients

  /// Elements of a rank's shard: of equal parts the largest.
  std::int64_t shard() const { return (parameters + ranks - 1) / ranks; }
};
/// `experts` of the `parameters` (0 where nothing is spread), which the replicas of an expert
/// divide, and the rest, which all replicas do.
struct ParameterParts {
  ParameterPart dense, experts;
  std::array<ParameterPart, 2> all() const { return {dense, experts}; }
};
ParameterParts parts_of(const StepOptions& step, std::int64_t parameters, std::int64_t experts);
/// Those of `block` that lie on other ranks than its dense ones: 0 where experts are on all.
std::int64_t spread_experts(const StepOptions& step, const Block& block);

/// Parameters are divided, and gathered unit by unit around their use. A unit is a layer; embedding
/// and head together are the root unit.
bool gathers_units(const StepOptions& step);
/// Gathered units stay from forward to the end of their backward.
bool keeps_units(const StepOptions& step);
/// And of all micro-batches: a pipeline stage gathers each unit once a step, and frees it behind
/// the last backward that reads it. Source: torch.distributed.pipelining stage.py,
/// backward_one_chunk, which turns FSDP2's resharding off until its last call.
bool holds_units(const StepOptions& step);
/// Weights of products come as FP8: cast ahead of their gather, or held so.
bool gathers_fp8(const StepOptions& step);
/// Bytes that a rank's share of a block's weights is smaller where it is held in FP8
/// (`mixed_precision.fp8_parameters`), under MXFP8 in two orders; 0 where it is not.
std::int64_t saved_by_fp8_shard(const StepOptions& step, const Block& block);
/// Gradients leave block by block for the rank that keeps their shard.
bool scatters_gradients(const StepOptions& step);
/// The CPU updates, and keeps moments, master weights and, where they are scattered, gradients.
bool offloads_update(const StepOptions& step);
/// Weights live where the CPU updates them, and each unit fetches its shard ahead of its gather.
bool offloads_parameters(const StepOptions& step);
/// Parameters are whole on every rank, and gathered from those that updated them.
bool gathers_updates(const StepOptions& step);

/// DeepSpeed's ZeRO-1 (zero/stage_1_and_2.py, bf16_optimizer.py): gradients are reduced in a
/// bucket. fp16: the rank's partition of them is copied out, flattened once more and cast to fp32,
/// and none of the copies is freed before the next is made. bf16: backward leaves 16-bit gradients
/// beside the fp32 ones that they are added to.
bool copies_gradients(const StepOptions& step);

/// Elements of this rank's shard of `parameters`. `experts` of them are held by replicas of their
/// own (ParallelLayout::expert_replicas), which divide them among themselves.
std::int64_t shard_of(const StepOptions& step, std::int64_t parameters, std::int64_t experts = 0);

/// Formats in which a block reads its weights and leaves their gradients: sharded ones are in the
/// format of activations, but where FSDP2 adds up whole gradients of micro-batches, in that of
/// their sum. Source: torch/distributed/fsdp/_fully_shard/_fsdp_param.py,
/// to_accumulated_grad_if_needed.
Precision block_parameter_format(const StepOptions& step);
Precision block_gradient_format(const StepOptions& step);

/// Whether replicas hold every gradient a second time, in the buckets of DistributedDataParallel
/// (gradient_as_bucket_view=False, its default).
/// Source: PyTorch torch/csrc/distributed/c10d/reducer.cpp, initialize_buckets.
bool copies_to_buckets(const StepOptions& step);

/// What a rank holds of the frozen weights of `block` that are gathered layer by layer.
Bytes frozen_bytes(const StepOptions& step, const Block& block);

/// Weights, gradients and optimizer states of a rank that owns `parameters`, between steps. ZeRO's
/// 2 + 2 + 12 bytes in fp16 with one, two or all of them divided.
/// `experts`: as for shard_of.
Bytes persistent_bytes(const StepOptions& step, std::int64_t parameters, std::int64_t experts = 0);
/// Which of them is what.
CategoryBytes persistent_parts(const StepOptions& step, std::int64_t parameters,
                               std::int64_t experts = 0);

}  // namespace tessera
