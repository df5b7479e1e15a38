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

/// Of passes over a model chunk.
struct PassCosts {
  PassTimes times;
  PassTimes copies_out = {};  ///< of the link, which may go on behind the pass
};
/// Of a model chunk, by whether the backward pass of the micro-batch is split.
struct ChunkTimes {
  PassCosts whole, split;
  PassCosts& of(bool splits) { return splits ? split : whole; }
  const PassCosts& of(bool splits) const { return splits ? split : whole; }
};

/// Of the operators as they are.
PassTimes base_times(const StageGraph& graph);
/// Of a schedule, which stands still as `cost` says.
PassTimes planned_times(const StageGraph& graph, const remat::Schedule& schedule,
                        const remat::ReplayResult& cost);
/// What the schedule copies out over `link` in each pass.
PassTimes copies_out(const StageGraph& graph, const remat::Schedule& schedule,
                     const remat::HostLink& link);

/// When the last pass of a step ends that has nothing but its passes, in the order of every stage's
/// program: a forward pass waits for that of the chunk before, a backward pass for that of the
/// chunk behind. Where passes follow on each other faster than the link takes what they copy out,
/// as forward passes at the begin of a step may, each ends later by what the link is behind.
/// `times`: by stage and chunk.
Seconds pipeline_time(const StepOptions& step, const std::vector<RankProgram>& stages,
                      const std::vector<std::vector<ChunkTimes>>& times);

}  // namespace tessera
