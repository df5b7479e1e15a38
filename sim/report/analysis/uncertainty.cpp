#include "sim/report/analysis/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/plan/timed_program.h"
#include "sim/report/time_category.h"

namespace tessera {
namespace {

/// Log time that sessions, cards, libraries and settings which no description states put between
/// the steps of one source and the simulation, standard deviation: of steps of 0.01 that with which
/// the intervals of 15 published sources hold 80 % of their rows, sources weighing alike; with each
/// left out the others choose 0.04 to 0.06 (decision 44).
constexpr double kSource = 0.06;
/// Of exposed communication and copies and of the host: constants fitted to other systems miss
/// collectives of 4 MB and more by 0.11 (results/collectives/left_out_systems.txt), and what a host
/// takes for a call differs more than that.
constexpr double kOutsideKernels = 0.15;

}  // namespace

std::optional<StepInterval> step_interval(const TimedProgram& timed, const KernelTimes& times,
                                          const TimeBreakdown& breakdown) {
  SpreadSum sum;
  for (std::size_t k = 0; k < times.size(); ++k)
    sum.add(times[k], timed.kernels[k].prediction.spread);
  const LogSpread spread = sum.relative();
  if (log_half_width(spread) <= 0) return std::nullopt;
  const Seconds step = breakdown.total();
  const Seconds outside = breakdown.exposed_communication() + breakdown.exposed_copies() +
                          breakdown[TimeCategory::host];
  const double share = step.value() > 0 ? outside / step : 0;
  const LogSpread whole{
      .gpu = std::hypot((1 - share) * spread.gpu, share * kOutsideKernels, kSource),
      .shape = (1 - share) * spread.shape};
  return StepInterval{interval_80(step, whole), spread};
}

std::vector<ExtrapolatedKernels> extrapolated_kernels(const TimedProgram& timed,
                                                      const KernelTimes& times) {
  Seconds all;
  for (const Seconds time : times) all += time;
  std::map<KernelKind, ExtrapolatedKernels> by_kind;
  for (std::size_t k = 0; k < times.size(); ++k) {
    const Extrapolation& beyond = timed.kernels[k].prediction.extrapolated;
    if (!beyond || times[k].value() <= 0) continue;
    const KernelKind kind = timed.kernels[k].kernel.kind;
    ExtrapolatedKernels& entry = by_kind[kind];
    entry.kind = kind;
    entry.share += times[k] / all;
    if (beyond.factor <= entry.factor) continue;
    entry.factor = beyond.factor;
    entry.input = beyond.input;
  }
  std::vector<ExtrapolatedKernels> entries;
  for (const auto& [kind, entry] : by_kind) entries.push_back(entry);
  std::ranges::stable_sort(entries, std::ranges::greater{}, &ExtrapolatedKernels::share);
  return entries;
}

}  // namespace tessera
