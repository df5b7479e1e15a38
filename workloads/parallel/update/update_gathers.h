#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "workloads/parallel/gradient_buckets.h"
#include "workloads/parallel/op_queue.h"
#include "workloads/parallel/pass_library.h"
#include "workloads/schedules/schedule.h"

namespace tessera {

/// Gathers weights that every rank holds whole from the ranks that updated their shards (ZeRO-1 and
/// 2, Megatron's distributed optimizer): in one piece behind the update, or bucket by bucket beside
/// the next step's first forward pass, the first one from the start of the step, the others one
/// bucket ahead of the block that needs them. With `align_parameters` all stages of an interleaved
/// pipeline gather a model chunk at the same time: the first two at the start, chunk c when stage s
/// begins forward pass (c - 1) * stages - s. A step then gathers what the step before updated.
/// Experts that are spread over ranks come from the replicas that hold the same ones, in buckets
/// of their own. Where the framework gathers lists
/// (`FrameworkProfile::gathers_lists`) the piece is two copies of the weights beside them, and a
/// few framework calls for each rank's part of each tensor.
class UpdateGathers {
 public:
  /// All have to outlive it. Does nothing where the step gathers no updates.
  UpdateGathers(PassLibrary& library, const StepOptions& step, int stage, OpQueue& queue);

  /// A model chunk of the stage, from position `begin` on.
  void add_chunk(int begin, const std::vector<GradientBucket>& buckets);
  /// At the start of a step.
  void begin();
  /// Ahead of a pass.
  void begin_pass(const ScheduledPass& pass);
  /// Ahead of a block.
  void before(int position, const ScheduledPass& pass);
  /// Behind the update of the rank's shard of `parameters`, which `tensors` hold; `experts` of them
  /// have replicas of their own.
  void finish(std::int64_t parameters, std::int64_t experts, int tensors);

 private:
  struct Gather {
    GradientBucket bucket;
    std::int32_t op = -1;  ///< -1: not started
  };
  /// In the order of forward: of what all replicas hold, and of experts that are spread.
  using Chunk = std::array<std::vector<Gather>, 2>;
  /// Bytes of so many weights on their way.
  Bytes gathered(std::int64_t parameters) const;
  void gather_lists(std::int64_t parameters, int tensors);
  std::int32_t start(GroupKind group, std::int64_t parameters, Phase phase);
  void start(Gather& gather);
  /// What the block at `position` needs, and the bucket behind it is started.
  void await(int position, std::vector<Gather>& gathers);
  /// Of the stage's chunks in the order of forward; nothing where it has fewer.
  void start_chunk(int chunk);

  PassLibrary& library_;
  const StepOptions& step_;
  int stage_;
  OpQueue& queue_;
  bool on_;
  bool overlaps_;
  bool aligns_;
  int forward_passes_ = 0;        ///< that have begun
  std::map<int, Chunk> gathers_;  ///< by first position
};

}  // namespace tessera
