#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "workloads/optimizers/optimizer_step.h"
#include "workloads/parallel/gradient_buckets.h"
#include "workloads/parallel/op_queue.h"
#include "workloads/parallel/pass_library.h"
#include "workloads/schedules/schedule.h"
#include "workloads/sharding.h"

namespace tessera {

/// Sums gradients over data-parallel ranks, in one of three ways:
/// - one piece behind backward (Megatron without overlap);
/// - bucket by bucket beside the backward of the last micro-batch (DDP, Megatron with overlap); in
///   a pipeline Megatron starts a model chunk's sums on all stages at the same time: with the
///   interleaved schedule on stage s behind the s-th pass after the chunk's last one; else on the
///   first stage as without a pipeline, and on the others, which wait for the first anyway, behind
///   their last pass. A stage that stops to sum would hold up all before it one after the other.
/// - block by block, where gradients are sharded: a copy in the format of the sum is reduce-
///   scattered beside the next backward, and added to the shard (ZeRO-2 and 3, FSDP); experts that
///   are spread over ranks by themselves, and where one rank alone holds them they are added to
///   what it keeps as they are.
/// Experts that are spread over ranks have buckets, or a piece, of their own. In the other two,
/// gradients of DualPipe's two copies of a model are one piece always. With sharded optimizer
/// states the first two reduce-scatter instead of all-reducing; with several shard groups, the
/// groups all-reduce their shards behind that.
class GradientReduction {
 public:
  /// All have to outlive it.
  GradientReduction(PassLibrary& library, const StepOptions& step, int stage, OpQueue& queue);

  /// A model chunk of the stage: positions [begin, end).
  void add_chunk(int begin, int end, const std::vector<GradientBucket>& buckets);

  /// Place of a pass among those of its chunk that make weight gradients.
  struct Turn {
    bool first = false;
    bool last = false;
  };
  /// True where backward finds no gradients of earlier micro-batches.
  bool stores(const Turn& turn) const;
  void before(int position, const ScheduledPass& pass, const Turn& turn);
  void after(int position, const ScheduledPass& pass, const Turn& turn);
  /// Behind all blocks of a backward pass.
  void end_pass(const ScheduledPass& pass, const Turn& turn);
  /// Behind all passes, over `parameters` of the rank: kernels behind it find the sums. `experts`
  /// of them have replicas of their own.
  void finish(std::int64_t parameters, std::int64_t experts);
  /// The last op that the sums are behind; -1: none.
  std::int32_t last() const { return last_; }

 private:
  struct Chunk {
    int begin = 0;
    int end = 0;
    std::vector<GradientBucket> buckets;
    std::int64_t root = 0;  ///< gradients of the root unit that wait for its last block
    int due = -1;           ///< backward passes of the stage until its aligned sums start
  };
  Chunk& chunk_of(int position);
  bool waits_for_root(const Chunk& chunk, int position) const;
  ParameterParts parts(int position) const;
  /// Backward leaves the part's gradients in memory of their own, not in what the rank keeps.
  bool leaves_copy(const ParameterPart& part, const Turn& turn) const;
  void scatter(const ParameterPart& part, const ScheduledPass& pass, const Turn& turn);
  void scatter(const ParameterParts& unit, const ScheduledPass& pass, const Turn& turn);
  /// A shard of a micro-batch's gradients.
  struct ShardSum {
    std::int64_t elements = 0;
    std::int64_t summed = 0;  ///< bytes of one
    GroupKind group = GroupKind::shard;
    int micro_batch = -1;
    Bytes freed;           ///< by the kernel that adds them
    bool reduced = false;  ///< by the last op of the communication stream; else as backward made it
  };
  /// Into the shard that the rank keeps: the first sum becomes it.
  void accumulate(const ShardSum& sum, const Turn& turn);
  void move_to_host(ShardSum sum, const Turn& turn);
  std::int32_t add_on_host(const ShardSum& sum);
  /// Runs `op` over `sum`, which becomes a tensor of `format` bytes an element.
  void rewrite(const GraphOp& op, std::int64_t format, std::int32_t after, ShardSum& sum);
  bool adds(const Turn& turn) const {
    return step_.data_parallel.reduce_each_micro_batch && !turn.first;
  }
  void reduce(std::int64_t parameters);
  void reduce(const GradientBucket& bucket);
  void reduce_all(Chunk& chunk);
  void reduce_experts(std::int64_t experts);
  ProgramOp collective(OpKind kind, GroupKind group, Bytes bytes) const;
  void run_kernels(const GraphOp& op, GroupKind group, int micro_batch, Bytes freed = {},
                   std::int32_t after = -1);
  void run(const std::vector<GraphOp>& ops, const std::string& name);

  PassLibrary& library_;
  const ModelGraph& graph_;
  const StepOptions& step_;
  int stage_;
  OpQueue& queue_;
  bool scatters_;
  bool overlaps_;
  bool aligns_;  ///< sums of whole chunks start at set passes
  /// Gradients are added to those of other micro-batches one by one behind a whole backward pass,
  /// and are held until then. Source: nanotron optim/gradient_accumulator.py, backward().
  bool holds_until_added_;
  std::int64_t made_ = 0;  ///< bytes that the last block left to be held
  std::int64_t held_ = 0;  ///< bytes that earlier blocks of the pass left
  std::int64_t gradient_;  ///< bytes of an element, as backward makes it
  std::int64_t summed_;    ///< and as it is summed
  std::int64_t kept_;      ///< and as it is kept
  std::vector<Chunk> chunks_;
  std::int32_t last_ = -1;          ///< op of the data-parallel stream
  std::int32_t last_replica_ = -1;  ///< of the stream between shard groups
  std::int32_t leaving_ = -1;       ///< op behind which the last unit's gradients have left
  std::int32_t left_ = -1;          ///< likewise, of the unit before it
  std::map<std::tuple<std::string, std::int64_t>, Pass> kernels_;
};

}  // namespace tessera
