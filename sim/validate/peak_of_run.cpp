#include "sim/validate/peak_of_run.h"

#include <algorithm>

#include "sim/plan/library_memory.h"
#include "workloads/memory/memory_profile.h"

namespace tessera {

Bytes peak_of_training_run(const TrainingRun& run, const Scenario& scenario) {
  const Program program = build_program(scenario.model, scenario.step);
  const LibraryMemory libraries = library_memory(scenario.step, scenario.cluster.node);
  const int stages = static_cast<int>(program.stages.size());
  Bytes peak;
  for (int stage = run.peak_of_last_rank ? stages - 1 : 0; stage < stages; ++stage) {
    const MemoryProfile profile = profile_memory(program, stage, libraries.allocator);
    Bytes of_stage = run.memory_metric == "allocated" ? profile.peak : profile.reserved;
    if (run.memory_metric == "smi") of_stage += libraries.context + libraries.communicators;
    peak = std::max(peak, of_stage);
  }
  return peak;
}

}  // namespace tessera
