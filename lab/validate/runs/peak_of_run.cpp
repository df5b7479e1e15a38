#include "lab/validate/runs/peak_of_run.h"

#include <algorithm>
#include <string_view>

#include "sim/plan/library_memory.h"
#include "workloads/memory/memory_profile.h"

namespace tessera {
namespace {

/// Of the stages from `first` up to and without `end`; `metric` is "allocated", "reserved" or
/// "smi".
Bytes peak_of_stages(const Scenario& scenario, const Program& program, std::string_view metric,
                     int first, int end) {
  const LibraryMemory libraries = library_memory(scenario.step, scenario.cluster.node);
  Bytes peak;
  for (int stage = first; stage < end; ++stage) {
    const MemoryProfile profile = profile_memory(program, stage, libraries.allocator);
    Bytes of_stage = metric == "allocated" ? profile.peak : profile.reserved;
    if (metric == "smi") of_stage += libraries.context + libraries.communicators;
    peak = std::max(peak, of_stage);
  }
  return peak;
}

}  // namespace

Bytes peak_of_training_run(const TrainingRun& run, const Scenario& scenario,
                           const Program& program) {
  const int stages = static_cast<int>(program.stages.size());
  const int first = run.peak_rank == PeakRank::last ? stages - 1 : 0;
  const int end = run.peak_rank == PeakRank::first ? 1 : stages;
  return peak_of_stages(scenario, program, run.memory_metric, first, end);
}

Bytes device_peak(const Scenario& scenario, const Program& program) {
  return peak_of_stages(scenario, program, "smi", 0, static_cast<int>(program.stages.size()));
}

}  // namespace tessera
