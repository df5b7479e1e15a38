#include "lab/validate/runs/peak_of_run.h"

#include <algorithm>
#include <string_view>

#include "sim/plan/launch_clock.h"
#include "sim/plan/library_memory.h"
#include "workloads/memory/allocator_replay.h"
#include "workloads/memory/memory_profile.h"

namespace tessera {
namespace {

/// A trainer that resets the statistics behind backward (rules.csv) says what was held since then.
constexpr std::string_view kReservedBehindPasses = "reserved behind passes";

/// Where the host runs ahead of the GPU and that decides what is held; else empty.
LaunchTimes launches(const ProgramOfRun& run, int stage) {
  if (run.timed == nullptr || !run.timed->records_streams) return {};
  return launch_times(*run.timed)[static_cast<std::size_t>(stage)];
}

Bytes reserved_ahead(const ProgramOfRun& run, int stage) {
  const LaunchTimes times = launches(run, stage);
  if (times.empty()) return Bytes(0);
  return reserved_memory(run.program, stage, run.timed->library_memory.allocator, times);
}

/// Of `stage`; `metric` is "allocated", "reserved", "reserved behind passes" or "smi".
Bytes peak_of_stage(const LibraryMemory& libraries, const ProgramOfRun& run,
                    std::string_view metric, int stage) {
  if (metric == kReservedBehindPasses)
    return reserved_behind_passes(run.program, stage, libraries.allocator, launches(run, stage));
  const MemoryProfile profile = profile_memory(run.program, stage, libraries.allocator);
  if (metric == "allocated") return profile.peak;
  const Bytes reserved = std::max(profile.reserved, reserved_ahead(run, stage));
  return metric == "smi" ? reserved + libraries.context + libraries.communicators : reserved;
}

/// Of the stages from `first` up to and without `end`.
Bytes peak_of_stages(const Scenario& scenario, const ProgramOfRun& run, std::string_view metric,
                     int first, int end) {
  const LibraryMemory libraries = library_memory(scenario.step, scenario.cluster.node);
  Bytes peak;
  for (int stage = first; stage < end; ++stage)
    peak = std::max(peak, peak_of_stage(libraries, run, metric, stage));
  return peak;
}

}  // namespace

Bytes peak_of_training_run(const TrainingRun& run, const Scenario& scenario,
                           const ProgramOfRun& program) {
  const int stages = static_cast<int>(program.program.stages.size());
  const int first = run.peak_rank == PeakRank::last ? stages - 1 : 0;
  const int end = run.peak_rank == PeakRank::first ? 1 : stages;
  const bool reset = run.stated("statistics_reset") == "behind passes";
  return peak_of_stages(scenario, program, reset ? kReservedBehindPasses : run.memory_metric, first,
                        end);
}

Bytes device_peak(const Scenario& scenario, const ProgramOfRun& program) {
  const int stages = static_cast<int>(program.program.stages.size());
  return peak_of_stages(scenario, program, "smi", 0, stages);
}

}  // namespace tessera
