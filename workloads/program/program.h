#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hw/units/id.h"
#include "hw/units/quantity.h"
#include "workloads/graph/tensor.h"
#include "workloads/memory/memory_bytes.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// Part of the training step that an op belongs to; breakdowns are by phase.
enum class Phase : std::uint8_t { forward, loss, backward, gradient_reduction, optimizer };

/// In-order queues of one GPU, as CUDA streams.
enum class StreamKind : std::uint8_t {
  compute,
  tensor_comm,
  data_comm,
  pipeline_send,
  pipeline_recv,
  context_comm,
  expert_comm,
  replica_comm,    ///< between shard groups
  device_to_host,  ///< copies of a memory plan
  host_to_device,
  host,  ///< the CPU of a replayed trace: its ops neither slow kernels nor are slowed by
         ///< collectives
};
constexpr int kStreamCount = 11;

/// Ranks that communicate with each other. Which ranks a group of each kind holds is said by one
/// table: workloads/process_groups.h.
enum class GroupKind : std::uint8_t {
  tensor,
  data,
  pipeline,
  embedding,
  world,
  shard,          ///< replicas that together hold one copy of what is sharded
  replica,        ///< replicas that hold the same shard
  context,        ///< ranks that share each sequence
  expert,         ///< replicas that together hold all experts
  expert_data,    ///< replicas that hold the same experts
  expert_tensor,  ///< ranks that each hold a part of the same experts
  listed,         ///< ranks that the program lists: Program::listed_groups
};
constexpr int kGroupKindCount = 12;

/// Collectives run over the rank's group of kind `group`, on a communication stream.
enum class OpKind : std::uint8_t {
  kernels,  ///< a segment of kernels on the compute stream
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,  ///< an uneven one counts as the even one of its busiest rank
  ring_shift,  ///< every rank sends to the next of its group and receives from the one before
  send,        ///< to the same tensor/data position of pipeline stage `peer_stage`
  recv,        ///< ends when the message `tag` from `peer_stage` has arrived
  copy_out,    ///< `bytes` to host memory
  copy_in,     ///< and back
};

constexpr bool is_copy(OpKind kind) {
  return kind == OpKind::copy_out || kind == OpKind::copy_in;
}
constexpr bool is_collective(OpKind kind) {
  return kind >= OpKind::all_reduce && kind <= OpKind::ring_shift;
}

enum class MemoryEventKind : std::uint8_t {
  allocate,
  free,
  receive,    ///< what a message brings is there when the segment starts
  send,       ///< what a message takes is gone when the segment ends
  drop_sent,  ///< likewise what the forward pass sent, where the framework keeps it that long
};

/// Memory that a segment takes or gives back.
struct MemoryEvent {
  MemoryEventKind kind = MemoryEventKind::allocate;
  std::int32_t kernel = 0;  ///< kernels of the segment that were launched before
  StorageId storage;        ///< of the segment's block; invalid: of a message or the optimizer
  Bytes bytes;              ///< as the allocator counts them
};

/// A run of kernels that nothing interrupts; all kernels share phase and layer.
struct Segment {
  std::string name;  ///< "layer.forward.attention"
  Phase phase = Phase::forward;
  std::vector<KernelLaunch> kernels;
  Bytes host_moved;  ///< by the CPU, of its memory, instead of kernels; it takes that long
  int host_ops = 0;  ///< framework calls that the host makes to launch the segment (views included)
  bool host_sync = false;   ///< the host waits for the segment's end before it goes on (.item(),
                            ///< nonzero, synchronize)
  Bytes peak_above_start;   ///< highest memory in use within the segment, minus that at its start;
                            ///< >= 0
  Bytes net_memory;         ///< memory in use at the end minus that at the start
  std::int32_t block = -1;  ///< in `Program::blocks`; -1: of no block
  std::vector<MemoryEvent> memory;  ///< in order; adds up to the two figures above
  std::vector<StorageId> touches;   ///< of the block: what must be on the device while it runs
  std::vector<StorageId> writes;    ///< of these; with what the communication ahead of it wrote
  bool repeatable = false;  ///< running it again makes the same, where what it read is as it was
};

/// Tells the groups of one rank apart: kind, and which of the listed ones.
using GroupOfRank = std::pair<GroupKind, std::int32_t>;

/// One entry of a rank's program. Its position in `RankProgram::ops` is its event: others wait for
/// it by that number.
struct ProgramOp {
  OpKind kind = OpKind::kernels;
  StreamKind stream = StreamKind::compute;
  Phase phase = Phase::forward;
  std::array<std::int32_t, 2> waits{
      -1, -1};        ///< ops of this rank that must have ended, besides stream order; -1 = none
  SegmentId segment;  ///< for `kernels`
  GroupKind group = GroupKind::tensor;  ///< for collectives
  std::int32_t listed_group = -1;       ///< for those of a listed group: which
  /// Collective, as nccl-tests count: buffer per rank (all_gather: the gathered one,
  /// reduce_scatter, all_to_all and ring_shift: what one rank sends); send/recv: message.
  Bytes bytes;
  std::int32_t peer_stage = -1;   ///< for send and recv
  std::int32_t tag = -1;          ///< matches a send to its recv within one step
  std::int32_t micro_batch = -1;  ///< -1: not of one micro-batch
  std::int32_t layer = -1;   ///< global layer number; -1: embedding, head, optimizer, communication
                             ///< of the whole model
  bool host_sync = false;    ///< the host waits for this op before it submits the next
  Bytes allocated;           ///< when the op starts, besides what its segment says
  Bytes freed;               ///< when the op ends, likewise
  bool moves_saved = false;  ///< a copy of what a layer saved: these two are its tensors

  GroupOfRank group_of_rank() const { return {group, listed_group}; }
};

/// Which part of a micro-batch's work on a model chunk a pass is.
enum class PassPart : std::uint8_t {
  forward,
  backward,        ///< up to the gradient that the stage before waits for, or all of it
  weight_gradient  ///< the rest, where the schedule splits backward
};
constexpr int kPassParts = 3;

/// Where a pass lies in a rank's program; messages are outside of passes.
struct PassSpan {
  PassPart part = PassPart::forward;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;           ///< of the stage's model chunks
  std::int32_t begin = 0, end = 0;  ///< in `RankProgram::ops`
};

/// Everything one rank does in one step, in the order in which its host submits it.
struct RankProgram {
  int stage = 0;
  std::vector<ProgramOp> ops;
  std::vector<PassSpan> passes;   ///< in order
  Bytes static_memory;            ///< parameters, gradients, optimizer states, persistent buffers
  CategoryBytes static_parts;     ///< which of it is what; adds up to `static_memory`
  std::int64_t parameters = 0;    ///< held by this rank
  Bytes made_by_update;           ///< of `static_memory`: what the first step's update makes
  std::int32_t update_begin = 0;  ///< of `ops`: the update's first one
};

/// Dimensions that ranks are numbered by.
enum class RankDimension : std::uint8_t { tensor, context, expert, data, pipeline };
constexpr int kRankDimensionCount = 5;
/// Neighbours of the first dimension are neighbours in rank; those of the last are farthest apart.
/// Experts are spread over the data- and context-parallel ranks, neighbouring ones where they come
/// before the data dimension, else ones as far apart as possible.
using RankOrder = std::array<RankDimension, kRankDimensionCount>;
/// Megatron's order.
constexpr RankOrder kDefaultRankOrder = {RankDimension::tensor, RankDimension::context,
                                         RankDimension::expert, RankDimension::data,
                                         RankDimension::pipeline};

/// Sizes of the parallel dimensions.
struct ParallelLayout {
#include "configs/schema/fields/parallel_layout.inc"
  int shard = 1;  ///< neighbouring replicas that share one copy of what is sharded; divides
                  ///< `replicas()`

  /// Ranks that each hold a part of the sequence between split layers; 1: all hold all of it.
  int sequence_parts() const {
    return sequence_parallel ? tensor : 1;
  }
  int world_size() const {
    return tensor * pipeline * data * context;
  }
  /// Ranks that hold the same dense parameters: they sum their gradients.
  int replicas() const {
    return data * context;
  }

  /// Parts that an expert is held in.
  constexpr int expert_parts() const {
    return expert_tensor > 0 ? expert_tensor : tensor;
  }
  /// Experts are cut into another number of parts than dense layers.
  constexpr bool cuts_experts_apart() const {
    return expert_parts() != tensor;
  }
  /// Ranks of a stage over which whole experts, or equal parts of them, can be spread.
  constexpr int expert_places() const {
    return tensor * data * context / expert_parts();
  }
  /// Ranks that hold the same experts: they sum their gradients.
  int expert_replicas() const {
    return expert_places() / expert;
  }
  /// Those are others than the ranks that hold the same dense parameters.
  bool experts_apart() const {
    return expert > 1 || cuts_experts_apart();
  }
  /// Some gradients have to be summed.
  bool has_replicas() const {
    return replicas() > 1 || (cuts_experts_apart() && expert_replicas() > 1);
  }
};

/// Position of a rank in the layout.
struct RankPosition {
  int tensor = 0;
  int pipeline = 0;
  int data = 0;
  int context = 0;
};

/// The member of `value` that a dimension counts; experts have none of their own.
template <class Value>
constexpr auto* member_of(RankDimension dimension, Value& value) {
  switch (dimension) {
    case RankDimension::tensor:
      return &value.tensor;
    case RankDimension::context:
      return &value.context;
    case RankDimension::data:
      return &value.data;
    case RankDimension::pipeline:
      return &value.pipeline;
    case RankDimension::expert:
      break;
  }
  return static_cast<decltype(&value.tensor)>(nullptr);
}

constexpr RankPosition position_of(int rank, const ParallelLayout& layout) {
  RankPosition position;
  for (const RankDimension dimension : layout.order) {
    const int* size = member_of(dimension, layout);
    if (size == nullptr) continue;
    *member_of(dimension, position) = rank % *size;
    rank /= *size;
  }
  return position;
}
constexpr int rank_of(const RankPosition& position, const ParallelLayout& layout) {
  int rank = 0;
  int stride = 1;
  for (const RankDimension dimension : layout.order) {
    const int* size = member_of(dimension, layout);
    if (size == nullptr) continue;
    rank += *member_of(dimension, position) * stride;
    stride *= *size;
  }
  return rank;
}

/// What a program keeps of a block of the model's graph.
struct ProgramBlock {
  std::string name;
  std::vector<Storage> storages;
  bool spans_layers = false;  ///< of a memory plan: its segments belong to several layers
};
/// A block at its place in the model.
struct BlockPosition {
  std::int32_t block = 0;   ///< in `Program::blocks`
  std::int32_t layer = -1;  ///< -1: outside of transformer layers
};

/// Tokens that travel once per GPU and node with one of their experts (ExpertDispatcher); no
/// experts: none do.
struct TokenRouting {
  std::int64_t experts = 0;
  std::int64_t per_token = 0;
  int multiprocessors = 0;  ///< that the exchange's kernels take
};

/// A training (or inference) step of the whole job: one RankProgram per pipeline stage, shared by
/// all its ranks.
struct Program {
  ParallelLayout layout;
  std::vector<Segment> segments;  ///< distinct runs of kernels; identical layers share one
  /// By pipeline stage; where replicas differ, all stages of the one kind behind those of the
  /// other.
  std::vector<RankProgram> stages;
  std::vector<std::int32_t> kind_of_replica;  ///< by data-parallel rank; empty: all alike
  /// Ranks of groups that follow from no layout, ascending; only where every rank has a program of
  /// its own (`layout.pipeline` ranks).
  std::vector<std::vector<int>> listed_groups;
  std::vector<int> placement;        ///< GPU of each rank; empty: rank r is GPU r
  std::vector<ProgramBlock> blocks;  ///< distinct ones
  std::vector<BlockPosition> order;  ///< as forward runs them
  TokenRouting tokens;               ///< of all-to-alls over the expert group
  int micro_batches = 1;
  std::int64_t tokens_per_step = 0;
  std::int64_t sequences_per_step = 0;
  Flops model_flops;     ///< of products and fused attention without recomputation, all ranks
                         ///< (numerator of MFU)
  Flops hardware_flops;  ///< that are executed (numerator of HFU)
  std::int64_t parameters = 0;  ///< of the whole model

  /// Which of `stages` a rank runs.
  int program_number(int rank) const {
    const RankPosition at = position_of(rank, layout);
    const int kind =
        kind_of_replica.empty() ? 0 : kind_of_replica[static_cast<std::size_t>(at.data)];
    return kind * layout.pipeline + at.pipeline;
  }
  const RankProgram& program_of(int rank) const {
    return stages[static_cast<std::size_t>(program_number(rank))];
  }
  int gpu_of(int rank) const {
    return placement.empty() ? rank : placement[static_cast<std::size_t>(rank)];
  }
  std::vector<int> gpus_of(std::vector<int> ranks) const {
    for (int& rank : ranks) rank = gpu_of(rank);
    return ranks;
  }
  const Segment& segment(SegmentId id) const {
    return segments[static_cast<std::size_t>(id.index())];
  }
};

struct ModelSpec;
struct StepOptions;

/// Splits one step of `model` over the layout and orders it: kernels in segments, collectives,
/// messages between stages. Pure. Throws InputError with everything that makes the combination
/// impossible.
Program build_program(const ModelSpec& model, const StepOptions& step);

}  // namespace tessera
