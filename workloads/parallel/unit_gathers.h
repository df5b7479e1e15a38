#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "workloads/parallel/op_queue.h"
#include "workloads/parallel/pass_library.h"
#include "workloads/schedules/schedule.h"
#include "workloads/sharding.h"

namespace tessera {

/// Gathers sharded weights around their use, as PyTorch's FSDP does: a layer is a unit, what
/// belongs to no layer is the root unit. The shard is cast to the format of activations, gathered
/// on the data-parallel stream and freed behind its use. Forward runs ahead as far as
/// `DataParallel::units_ahead` lets it; backward gathers a unit ahead of the backward of the one
/// before it (BACKWARD_PRE). The root unit stays from forward to the end of backward.
/// Experts that are spread over ranks are a part of their layer's unit that is gathered by itself,
/// from the replicas of these experts; where they have one replica they are cast alone.
/// Source: torch/distributed/fsdp/_runtime_utils.py; torchtitan's expert parallelism, whose experts
/// are wrapped over a mesh of their own.
class UnitGathers {
 public:
  /// All have to outlive it. Does nothing where the step gathers no units.
  UnitGathers(PassLibrary& library, const StepOptions& step, OpQueue& queue);

  /// Ahead of and behind all blocks of a pass; `positions` in ModelGraph::order, [begin, end).
  void begin_pass(const ScheduledPass& pass, int begin, int end);
  void end_pass(const ScheduledPass& pass, int begin, int end);
  /// Ahead of and behind one block; `next` is the one that the pass runs after it, -1: none.
  void before(int position, const ScheduledPass& pass, int next);
  void after(int position, const ScheduledPass& pass);

 private:
  bool is_unit(int position) const;
  ParameterParts parts(int position) const;
  /// Of the root unit, to which no experts belong.
  ParameterParts root_parts(int begin, int end) const;
  /// The copy that kernels read is other memory than what the rank holds.
  bool is_copied(const ParameterPart& part) const;
  Bytes gathered_bytes(const ParameterParts& parts) const;
  void gather(int position, const ScheduledPass& pass);
  std::int32_t gather(const ParameterParts& parts, const ScheduledPass& pass, int layer);
  std::int32_t gather(const ParameterPart& part, ProgramOp op);
  SegmentId cast_segment(std::int64_t elements);
  void await(std::int32_t gather);
  void free(int position);
  std::int32_t oldest_unfreed() const;

  PassLibrary& library_;
  const ModelGraph& graph_;
  const StepOptions& step_;
  OpQueue& queue_;
  bool on_;
  std::int64_t held_;                     ///< bytes of an element, as the rank keeps it
  std::int64_t used_;                     ///< and as kernels read it
  std::map<int, std::int32_t> gathered_;  ///< op that gathers, by position; only while it is whole
  std::map<int, int> users_;  ///< forward passes that wait for their backward, where units are kept
  std::map<int, std::int32_t> root_;    ///< by first position of the chunk: op that gathers
  std::map<int, int> root_users_;       ///< likewise
  std::vector<std::int32_t> frees_;     ///< kernels behind which a unit was freed
  std::map<std::int64_t, Pass> casts_;  ///< by elements
};

}  // namespace tessera
