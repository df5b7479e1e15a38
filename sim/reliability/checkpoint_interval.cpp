#include "sim/reliability/checkpoint_interval.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

/// Shorter intervals are not tried.
constexpr std::int64_t kMostCheckpoints = 200'000;

BestInterval tried(RunPlan& plan, double interval_s, std::uint64_t first_seed, int seeds) {
  plan.interval =
      std::max({Micros(1'000'000), plan.length / kMostCheckpoints, to_micros(Seconds(interval_s))});
  double sum = 0;
  for (int i = 0; i < seeds; ++i)
    sum += simulate_run(plan, first_seed + static_cast<std::uint64_t>(i)).effective_ratio();
  return {plan.interval, sum / seeds};
}

}  // namespace

Seconds young_interval(Seconds checkpoint, Seconds mean_time_to_failure) {
  return Seconds(std::sqrt(2 * checkpoint.value() * mean_time_to_failure.value()));
}

Seconds daly_interval(Seconds checkpoint, Seconds mean_time_to_failure) {
  const double ratio = checkpoint / mean_time_to_failure / 2;
  if (ratio >= 1) return mean_time_to_failure;
  return young_interval(checkpoint, mean_time_to_failure) * (1 + std::sqrt(ratio) / 3 + ratio / 9) -
         checkpoint;
}

double expected_effective_ratio(Seconds interval, Seconds checkpoint, Seconds restart,
                                Seconds mean_time_to_failure) {
  const double mean = mean_time_to_failure.value();
  const double work = interval.value() / mean;
  return work /
         (std::exp(restart.value() / mean) * std::expm1((interval + checkpoint).value() / mean));
}

BestInterval best_interval(RunPlan plan, Seconds guess, std::uint64_t first_seed, int seeds) {
  constexpr int kCoarse = 15, kFine = 5;
  const double ratio = std::pow(25.0, 1.0 / (kCoarse - 1));
  BestInterval best;
  const auto try_around = [&](double middle, double step, int points) {
    for (int i = 0; i < points; ++i) {
      const double interval = middle * std::pow(step, i - points / 2);
      const BestInterval one = tried(plan, interval, first_seed, seeds);
      if (one.effective_ratio > best.effective_ratio) best = one;
    }
  };
  try_around(guess.value(), ratio, kCoarse);
  try_around(to_seconds(best.interval).value(), std::pow(ratio, 1.0 / 3), kFine);
  return best;
}

}  // namespace tessera
