#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "workloads/optimizers/multi_tensor.h"
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
/// With `FrameworkProfile::copies_gathered` a kernel on the compute stream copies weights out of
/// the buffer that they came in, which is free behind it (torch/distributed/fsdp/_fully_shard,
/// foreach_all_gather_copy_out).
/// With `StepOptions::offload_parameters` the shard lives in host memory: ahead of the cast it is
/// copied to the GPU as it is held there, and that copy is free behind what reads it (recalled:
/// torch/distributed/fsdp/_fully_shard/_fsdp_param.py, all_gather_inputs; DeepSpeed
/// runtime/zero/partition_parameters.py).
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
  /// Weights that are gathered in FP8 are scaled by their largest values, which ranks find together
  /// behind the update, of `own` elements of `tensors`.
  /// Source: torchao, precompute_float8_dynamic_scale_for_fsdp; of Megatron-FSDP, Megatron-Core
  /// fp8_utils.py, quantize_param_shard (recalled). Blocks of MXFP8 have scales of their own.
  void find_scales(std::int64_t own, int tensors);

 private:
  /// What is gathered together.
  struct Unit {
    ParameterParts parts;
    std::int64_t fp8 = 0;  ///< of the dense part: gathered as FP8
  };
  bool is_unit(int position) const;
  Unit unit(int position) const;
  /// The root unit, to which no experts belong.
  Unit root_unit(int begin, int end) const;
  /// The copy that kernels read is other memory than what the rank holds.
  bool is_copied(const ParameterPart& part) const;
  Bytes gathered_bytes(const Unit& unit) const;
  void gather(int position, const ScheduledPass& pass);
  std::int32_t gather(const Unit& unit, const ScheduledPass& pass, int layer);
  std::int32_t gather(const ParameterPart& part, std::int64_t fp8, ProgramOp op);
  std::int32_t cast(const ParameterPart& part, std::int64_t fp8, const ProgramOp& op);
  std::int32_t fetch(const ParameterPart& part, ProgramOp op);
  bool is_fetched_in_place(const ParameterPart& part) const {
    return part.ranks == 1 && held_ == used_;
  }
  Bytes fetched_bytes(const ParameterPart& part) const { return Bytes(held_ * part.shard()); }
  const Pass& pass_over(const char* name, std::int64_t elements, PassTraffic traffic);
  void copy_out(const Unit& unit, const ScheduledPass& pass, int layer);
  void await(std::int32_t gather);
  void free(int position);
  std::int32_t oldest_unfreed() const;

  PassLibrary& library_;
  const ModelGraph& graph_;
  const StepOptions& step_;
  OpQueue& queue_;
  bool on_;
  bool fetches_;                          ///< shards from host memory
  bool holds_;                            ///< units stay until no micro-batch reads them
  std::int64_t held_;                     ///< bytes of an element, as the rank keeps it
  std::int64_t used_;                     ///< and as kernels read it
  std::map<int, std::int32_t> gathered_;  ///< op that gathers, by position; only while it is whole
  std::map<int, int> users_;  ///< forward passes that wait for their backward, where units are kept
  std::map<int, int> backwards_;      ///< that are through, by position, where units are held
  std::map<int, std::int32_t> root_;  ///< by first position of the chunk: op that gathers
  std::map<int, int> root_users_;     ///< likewise
  std::set<int> arriving_;            ///< gathered, and not used yet
  std::vector<std::int32_t> frees_;   ///< kernels behind which a unit was freed
  std::map<std::pair<std::string, std::int64_t>, Pass> passes_;  ///< by name and elements
};

}  // namespace tessera
