#include "app/html/data/flame_data.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/palette.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

using FlameJson = nlohmann::ordered_json;
using KernelSeconds = std::map<std::string, double>;

/// Of one phase: its class of time, and seconds by segment and kernel.
struct FlamePhase {
  const ClassLook* look = nullptr;
  std::map<std::string, KernelSeconds> segments;
};

using FlamePhases = std::map<Phase, FlamePhase>;

/// "qkv, gemm"; the kind alone where the name says nothing else.
std::string flame_name(const KernelLaunch& launch) {
  const std::string kind(label_of(launch.kernel.kind));
  return launch.name.empty() || launch.name == kind ? kind : launch.name + ", " + kind;
}

/// Adds a run of `segment` that took `seconds` of a GPU's mean.
void add_flame_run(const Segment& segment, const TimedSegment& timed, double seconds,
                   KernelSeconds& kernels) {
  const double whole = timed.duration.value();
  if (whole <= 0) return;
  for (std::size_t k = 0; k < segment.kernels.size(); ++k)
    kernels[flame_name(segment.kernels[k])] += seconds * timed.kernel_durations[k].value() / whole;
}

/// Seconds of the runs of every segment on `rank`, by the segment and the first op that ran it.
std::map<int, std::pair<double, const ProgramOp*>> flame_runs(const TimelineIndex& index,
                                                              int rank) {
  std::map<int, std::pair<double, const ProgramOp*>> runs;
  const auto records = index.records_of(rank);
  const std::vector<ProgramOp>& ops = index.program_of(rank).ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OpKind::kernels) continue;
    auto& [seconds, op] = runs.try_emplace(ops[i].segment.index(), 0.0, &ops[i]).first->second;
    seconds += (records[i].end - records[i].start).value();
  }
  return runs;
}

double total_of(const KernelSeconds& kernels) {
  double sum = 0;
  for (const auto& [name, seconds] : kernels) sum += seconds;
  return sum;
}

FlameJson longest_first(FlameJson parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const FlameJson& a, const FlameJson& b) {
    return a["seconds"].get<double>() > b["seconds"].get<double>();
  });
  return parts;
}

FlameJson phase_json(Phase phase, const FlamePhase& part) {
  FlameJson segments = FlameJson::array();
  double seconds = 0;
  for (const auto& [name, kernels] : part.segments) {
    FlameJson list = FlameJson::array();
    for (const auto& [kernel, time] : kernels)
      list.push_back({{"name", kernel}, {"seconds", time}});
    const double whole = total_of(kernels);
    seconds += whole;
    segments.push_back(
        {{"name", name}, {"seconds", whole}, {"kernels", longest_first(std::move(list))}});
  }
  return {{"name", label_of(phase)},
          {"colour", part.look->colour},
          {"seconds", seconds},
          {"segments", longest_first(std::move(segments))}};
}

}  // namespace

FlameJson flame_data(const TimelineIndex& index, const TimedProgram& timed) {
  FlamePhases phases;
  for (const auto& [rank, stands_for] : index.simulated()) {
    for (const auto& [number, run] : flame_runs(index, rank)) {
      const Segment& segment = timed.program.segments[static_cast<std::size_t>(number)];
      FlamePhase& phase = phases[segment.phase];
      if (!phase.look) phase.look = &look_of(class_of(*run.second));
      add_flame_run(segment, timed.segments[static_cast<std::size_t>(number)],
                    run.first * stands_for / index.ranks(), phase.segments[segment.name]);
    }
  }
  FlameJson list = FlameJson::array();
  for (const auto& [phase, part] : phases) list.push_back(phase_json(phase, part));
  return {{"step_s", index.step_time().value()}, {"phases", std::move(list)}};
}

}  // namespace tessera
