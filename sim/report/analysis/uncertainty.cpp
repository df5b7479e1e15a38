#include "sim/report/analysis/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/plan/timed_program.h"
#include "sim/report/time_category.h"

namespace tessera {

std::optional<StepInterval> step_interval(const TimedProgram& timed, const KernelTimes& times,
                                          const TimeBreakdown& breakdown) {
  SpreadSum sum;
  for (std::size_t k = 0; k < times.size(); ++k)
    sum.add(times[k], timed.kernels[k].prediction.spread);
  const LogSpread spread = sum.relative();
  if (log_half_width(spread) <= 0) return std::nullopt;
  const Seconds step = breakdown.total();
  const Seconds exact = breakdown.exposed_communication() + breakdown.exposed_copies() +
                        breakdown[TimeCategory::host];
  const Interval kernels = interval_80(step - exact, spread);
  return StepInterval{{exact + kernels.low, exact + kernels.high}, spread};
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
