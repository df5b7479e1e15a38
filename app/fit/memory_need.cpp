#include "app/fit/memory_need.h"

#include <algorithm>
#include <utility>

#include "predictor/weights/weights.h"
#include "sim/plan/launch_clock.h"
#include "sim/plan/plan.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

Bytes smallest_memory(const Scenario& scenario) {
  Bytes capacity = scenario.cluster.node.gpu.memory;
  for (const GpuPerturbation& gpus : scenario.perturbation.gpus)
    if (!gpus.gpu.id.empty()) capacity = std::min(capacity, gpus.gpu.memory);
  return capacity;
}

/// A step as far as it decides about memory.
struct NeededStep {
  Program program;
  LibraryMemory libraries;
  Bytes capacity;
  std::vector<LaunchTimes> times = {};  ///< by stage; none: not known, and not needed

  Bytes reserved_by(int stage) const {
    const auto at = static_cast<std::size_t>(stage);
    return reserved_memory(program, stage, libraries.allocator,
                           at < times.size() ? times[at] : LaunchTimes());
  }
};

NeededStep timed_step(TimedProgram timed) {
  std::vector<LaunchTimes> times = launch_times(timed);
  return {std::move(timed.program), timed.library_memory, timed.memory_capacity, std::move(times)};
}

/// The stage whose allocator holds most, and how much.
struct FullestStage {
  int stage = 0;
  Bytes reserved = Bytes(-1);
};

FullestStage fullest_stage(const NeededStep& step, NeedScope scope) {
  const int stages = static_cast<int>(step.program.stages.size());
  FullestStage fullest;
  for (int stage = 0; stage < stages; ++stage) {
    if (scope == NeedScope::quick && stage > 1 && stage < stages - 1) continue;
    const Bytes reserved = step.reserved_by(stage);
    if (reserved > fullest.reserved) fullest = {stage, reserved};
  }
  return fullest;
}

StepOptions shortened(const StepOptions& step) {
  const std::int64_t enough = 4 * static_cast<std::int64_t>(step.layout.pipeline);
  return with_micro_batches(step, std::min(step.micro_batches(), enough));
}

NeededStep needed_step(const Scenario& scenario, const PredictorWeights& weights, NeedScope scope) {
  const bool needs_time = scenario.memory.planner != MemoryPlanner::off ||
                          scenario.memory.limit > Bytes(0) ||
                          scenario.step.framework.records_streams;
  if (needs_time) return timed_step(plan_step(scenario, weights));
  LibraryMemory libraries = library_memory(scenario.step, scenario.cluster.node);
  const Bytes capacity = smallest_memory(scenario);
  libraries.allocator.capacity = capacity - libraries.context - libraries.communicators;
  const StepOptions step = scope == NeedScope::quick ? shortened(scenario.step) : scenario.step;
  return {build_program(scenario.model, step), libraries, capacity};
}

}  // namespace

MemoryNeed memory_need(const Scenario& scenario, const PredictorWeights& weights, NeedScope scope) {
  const NeededStep step = needed_step(scenario, weights, scope);
  const auto [stage, reserved] = fullest_stage(step, scope);
  const AllocatorSetting& allocator = step.libraries.allocator;
  const CategoryBytes parts = peak_memory(step.program, stage, allocator.workspaces);
  const Bytes in_order =
      step.times.empty() ? reserved : reserved_memory(step.program, stage, allocator);
  return {.stage = stage,
          .parts = parts,
          .device = {.allocated = parts.total(),
                     .reserved = std::max({parts.total(), reserved, in_order}),
                     .context = step.libraries.context,
                     .communicators = step.libraries.communicators},
          .capacity = step.capacity};
}

Bytes total_need(const Scenario& scenario, const PredictorWeights& weights, NeedScope scope) {
  const NeededStep step = needed_step(scenario, weights, scope);
  return fullest_stage(step, scope).reserved + step.libraries.context +
         step.libraries.communicators;
}

}  // namespace tessera
