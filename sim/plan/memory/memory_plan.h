#pragma once

#include <optional>
#include <string>
#include <vector>

#include "predictor/kernel_predictor.h"
#include "sim/plan/device_memory.h"
#include "sim/plan/memory/pipeline_time.h"
#include "sim/plan/memory/stage_graph.h"
#include "sim/plan/timed_program.h"
#include "sim/remat/planner.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// A micro-batch of one model chunk, as planned. Where a schedule splits the backward passes of
/// some micro-batches alone, the others have a plan of their own.
struct ChunkMemoryPlan {
  int chunk = 0;
  bool splits = false;  ///< the plan of micro-batches whose backward pass is split
  bool waits = true;  ///< other passes run between its passes: not those of a pipeline's last part
  double share = 1;   ///< of the step's micro-batches, that have this plan
  StageOps ops;
  StageGraph graph;
  remat::Schedule schedule;              ///< empty where the stage needs none, or has none
  remat::Nanoseconds schedule_time = 0;  ///< that it was planned to take
  PassTimes base_times, planned_times, copies_out;
};

/// What was decided for one pipeline stage.
struct StageMemoryPlan {
  int stage = 0;
  int in_flight = 1;    ///< micro-batches, of every model chunk, whose forward pass ran and whose
                        ///< backward pass did not
  bool needed = false;  ///< the stage does not fit without a plan
  bool feasible = true;
  Bytes static_bytes;      ///< with workspaces of libraries
  Bytes base_peak;         ///< without a plan
  Bytes planned_peak;      ///< of the rewritten program; = base_peak where no plan is needed
  Bytes planned_reserved;  ///< what its allocator must hold
  Bytes lower_bound;       ///< of any plan
  Seconds base_time;       ///< kernels and tensor-parallel collectives of a micro-batch
  Seconds planned_time;    ///< with what runs again, and stalls for copies
  Seconds recompute, stall;
  Seconds added_time;  ///< of all micro-batches, with waits for gathers, reductions and their room
  bool waits_for_room = false;  ///< until gradients are reduced
  Bytes copied;                 ///< of a micro-batch, both directions
  Bytes host_bytes;             ///< of the copies of all micro-batches in flight
  remat::DecisionCounts decisions;
  double certified_gap = 0;
  std::string infeasible;  ///< why: the operator and the missing bytes
  Bytes missing;
  std::string note;
  ActivationPacking packing = ActivationPacking::as_it_is;  ///< of `chunks`
  std::vector<ChunkMemoryPlan> chunks;                      ///< of the model, on this stage
  Bytes buffer_bytes;  ///< left free, for gathered parameters and the like
};

/// A step whose stages fit the budget, if that is possible.
struct PlannedStep {
  Bytes budget;  ///< no more than the GPU gives the allocator
  LibraryMemory libraries;
  remat::HostLink link;  ///< the narrowest of the stages'
  std::vector<StageMemoryPlan> stages;
  /// Change of the step time that the plans expect: of the passes in the order of the schedule.
  Seconds added_time;
  Seconds passes_time;  ///< of the passes with the plans, without data parallelism and optimizer
  int split = 1;        ///< micro-batches run in so many parts (MemorySettings::split_batch)
  bool feasible() const;
  /// What the fullest GPU must have with the plans.
  DeviceMemory device() const;
};

/// A step as its memory plan has it.
struct PlannedProgram {
  TimedProgram timed;
  PlannedStep memory;
};
/// `timed`, which `scenario` was made into, with a plan for every stage that needs more than the
/// budget: where it is feasible, what runs again becomes kernels, what is swapped becomes copies,
/// and the segments are predicted anew. Throws InputError for an unknown planner and for programs
/// that plans do not know.
PlannedProgram with_memory_plan(const Scenario& scenario, const KernelPredictor& predictor,
                                TimedProgram timed);

/// `timed`, the program of `scenario`, under the plan `foreseen` that was made for a step of other
/// sizes with the same operators (MemorySettings::planned_sequence_length): its peaks may exceed
/// the budget, which at run time is the limit. Throws InputError where the operators differ.
PlannedProgram with_foreseen_plan(const Scenario& scenario, const PlannedStep& foreseen,
                                  const KernelPredictor& predictor, TimedProgram timed);

/// `timed` with what the GPUs' allocators get at run time: the scenario's memory.limit, and the
/// budget of `plan`, if there is one that is feasible.
TimedProgram with_memory_limit(const Scenario& scenario, const PlannedStep* plan,
                               TimedProgram timed);

}  // namespace tessera
