#include "lab/validate/runs/peak_of_run.h"

#include <algorithm>
#include <string_view>

#include "sim/plan/launch_clock.h"
#include "sim/plan/library_memory.h"
#include "workloads/memory/memory_profile.h"

namespace tessera {
namespace {

/// Where the host runs ahead of the GPU and that decides what is held; else 0.
Bytes reserved_ahead(const ProgramOfRun& run, int stage) {
  if (run.timed == nullptr || !run.timed->records_streams) return Bytes(0);
  return reserved_memory(run.program, stage, run.timed->library_memory.allocator,
                         launch_times(*run.timed)[static_cast<std::size_t>(stage)]);
}

/// Of the stages from `first` up to and without `end`; `metric` is "allocated", "reserved" or
/// "smi".
Bytes peak_of_stages(const Scenario& scenario, const ProgramOfRun& run, std::string_view metric,
                     int first, int end) {
  const LibraryMemory libraries = library_memory(scenario.step, scenario.cluster.node);
  Bytes peak;
  for (int stage = first; stage < end; ++stage) {
    const MemoryProfile profile = profile_memory(run.program, stage, libraries.allocator);
    Bytes of_stage = metric == "allocated" ? profile.peak
                                           : std::max(profile.reserved, reserved_ahead(run, stage));
    if (metric == "smi") of_stage += libraries.context + libraries.communicators;
    peak = std::max(peak, of_stage);
  }
  return peak;
}

}  // namespace

Bytes peak_of_training_run(const TrainingRun& run, const Scenario& scenario,
                           const ProgramOfRun& program) {
  const int stages = static_cast<int>(program.program.stages.size());
  const int first = run.peak_rank == PeakRank::last ? stages - 1 : 0;
  const int end = run.peak_rank == PeakRank::first ? 1 : stages;
  return peak_of_stages(scenario, program, run.memory_metric, first, end);
}

Bytes device_peak(const Scenario& scenario, const ProgramOfRun& program) {
  const int stages = static_cast<int>(program.program.stages.size());
  return peak_of_stages(scenario, program, "smi", 0, stages);
}

}  // namespace tessera
