#pragma once

#include <array>
#include <vector>

#include "sim/plan/memory/stage_graph.h"
#include "sim/remat/schedule.h"
#include "workloads/program/program.h"
#include "workloads/step_options.h"

namespace tessera {

/// Time of each part of a micro-batch's work on a model chunk.
using PassTimes = std::array<Seconds, kPassParts>;

/// Of a model chunk, by whether the backward pass of the micro-batch is split.
struct ChunkTimes {
  PassTimes whole, split;
  PassTimes& of(bool splits) { return splits ? split : whole; }
  const PassTimes& of(bool splits) const { return splits ? split : whole; }
};

/// Of the operators as they are.
PassTimes base_times(const StageGraph& graph);
/// Of a schedule, which stands still as `cost` says.
PassTimes planned_times(const StageGraph& graph, const remat::Schedule& schedule,
                        const remat::ReplayResult& cost);

/// When the last pass of a step ends that has nothing but its passes, in the order of every stage's
/// program: a forward pass waits for that of the chunk before, a backward pass for that of the
/// chunk behind. `times`: by stage and chunk.
Seconds pipeline_time(const StepOptions& step, const std::vector<RankProgram>& stages,
                      const std::vector<std::vector<ChunkTimes>>& times);

}  // namespace tessera
