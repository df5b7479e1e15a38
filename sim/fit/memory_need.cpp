#include "sim/fit/memory_need.h"

#include <algorithm>

#include "predictor/weights.h"
#include "sim/plan/plan.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/program.h"

namespace tessera {
namespace {

Bytes smallest_memory(const Scenario& scenario) {
  Bytes capacity = scenario.cluster.node.gpu.memory;
  for (const GpuPerturbation& gpus : scenario.perturbation.gpus)
    if (!gpus.gpu.id.empty()) capacity = std::min(capacity, gpus.gpu.memory);
  return capacity;
}

/// The stage whose allocator holds most.
int fullest_stage(const Program& program, const AllocatorSetting& setting, NeedScope scope) {
  const int stages = static_cast<int>(program.stages.size());
  if (stages == 1) return 0;
  int fullest = 0;
  Bytes most(-1);
  for (int stage = 0; stage < stages; ++stage) {
    if (scope == NeedScope::quick && stage > 1 && stage < stages - 1) continue;
    const Bytes reserved = reserved_memory(program, stage, setting);
    if (reserved <= most) continue;
    most = reserved;
    fullest = stage;
  }
  return fullest;
}

MemoryNeed need_of(const Program& program, const LibraryMemory& libraries, Bytes capacity,
                   NeedScope scope) {
  MemoryNeed need{.stage = fullest_stage(program, libraries.allocator, scope),
                  .capacity = capacity};
  const MemoryProfile profile = profile_memory(program, need.stage, libraries.allocator);
  need.parts = profile.at_peak;
  need.device = {.allocated = profile.peak,
                 .reserved = std::max(profile.peak, profile.reserved),
                 .context = libraries.context,
                 .communicators = libraries.communicators};
  return need;
}

StepOptions shortened(StepOptions step) {
  const std::int64_t enough = 4 * static_cast<std::int64_t>(step.layout.pipeline);
  const std::int64_t batches = std::min(step.micro_batches(), enough);
  step.global_batch = step.micro_batch * step.layout.data * batches;
  return step;
}

}  // namespace

MemoryNeed memory_need(const Scenario& scenario, const PredictorWeights& weights,
                       NeedScope scope) {
  if (!scenario.memory.planner.empty() || scenario.memory.limit > Bytes(0)) {
    const TimedProgram timed = plan_step(scenario, weights);
    return need_of(timed.program, timed.library_memory, timed.memory_capacity, scope);
  }
  LibraryMemory libraries = library_memory(scenario.step, scenario.cluster.node);
  const Bytes capacity = smallest_memory(scenario);
  libraries.allocator.capacity = capacity - libraries.context - libraries.communicators;
  const StepOptions step =
      scope == NeedScope::quick ? shortened(scenario.step) : scenario.step;
  return need_of(build_program(scenario.model, step), libraries, capacity, scope);
}

}  // namespace tessera
