#include "sim/plan/rank_pace.h"

#include <cmath>
#include <numbers>

namespace tessera {
namespace {

/// Spreads every bit (finalizer of splitmix64, Steele et al. 2014).
std::uint64_t hashed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15ULL + b + 0x632be59bd9b4e019ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

/// In (0, 1].
double uniform(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11U) + 1) * 0x1p-53;
}

/// Of mean 0 and variance 1 (Box and Muller, 1958).
double normal(std::uint64_t state) {
  const double radius = std::sqrt(-2 * std::log(uniform(hashed(state, 1))));
  return radius * std::cos(2 * std::numbers::pi * uniform(hashed(state, 2)));
}

}  // namespace

Seconds RankPaces::perturbed(int rank, std::int32_t op, const TimedSegment& segment) const {
  const double slowdown = of(rank).slowdown;
  if (kernel_jitter <= 0) return segment.duration * slowdown;
  const std::uint64_t state =
      hashed(hashed(seed, static_cast<std::uint64_t>(rank)), static_cast<std::uint64_t>(op));
  const double mean_shift = kernel_jitter * kernel_jitter / 2;
  Seconds sum;
  for (std::size_t kernel = 0; kernel < segment.kernel_durations.size(); ++kernel) {
    const double z = normal(hashed(state, kernel));
    sum += segment.kernel_durations[kernel] * std::exp(kernel_jitter * z - mean_shift);
  }
  return sum * slowdown;
}

}  // namespace tessera
