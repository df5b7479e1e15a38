#include "sim/collectives/calibration_fit.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <map>
#include <utility>

namespace tessera {
namespace {

constexpr std::size_t kParts = 3;
using Vector = std::array<double, kParts>;
using Matrix = std::array<Vector, kParts>;

/// Weight of the wish for a factor of 1 against one measurement, squared relative error each.
constexpr double kPrior = 0.003;
/// Relative errors below this count as equal.
constexpr double kSmallError = 0.02;
constexpr int kRounds = 6;
/// Measurements closer than this many octaves share a knot of the correction curve, in files with
/// more rows than kDenseRows.
constexpr double kSparseOctaves = 1;
constexpr double kDenseOctaves = 0.5;
constexpr std::size_t kDenseRows = 60;

/// Solves a symmetric positive definite system of three.
Vector solve(Matrix a, Vector b) {
  for (std::size_t i = 0; i < kParts; ++i) {
    for (std::size_t row = i + 1; row < kParts; ++row) {
      const double factor = a[row][i] / a[i][i];
      for (std::size_t column = i; column < kParts; ++column)
        a[row][column] -= factor * a[i][column];
      b[row] -= factor * b[i];
    }
  }
  Vector x{};
  for (std::size_t i = kParts; i-- > 0;) {
    double rest = b[i];
    for (std::size_t column = i + 1; column < kParts; ++column) rest -= a[i][column] * x[column];
    x[i] = rest / a[i][i];
  }
  return x;
}

double dot(const Vector& a, const Vector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// Parts of the predicted time over the measured time, one per measurement.
using Shares = std::vector<Vector>;

Vector weighted_fit(const Shares& shares, const std::vector<double>& weights) {
  Matrix a{};
  Vector b{};
  for (std::size_t i = 0; i < kParts; ++i) {
    a[i][i] = kPrior;
    b[i] = kPrior;
  }
  for (std::size_t row = 0; row < shares.size(); ++row) {
    for (std::size_t i = 0; i < kParts; ++i) {
      b[i] += weights[row] * shares[row][i];
      for (std::size_t j = 0; j < kParts; ++j)
        a[i][j] += weights[row] * shares[row][i] * shares[row][j];
    }
  }
  return solve(a, b);
}

/// Factors that bring the sum of the parts to 1: least absolute errors by reweighted squares.
Vector factors_of(const Shares& shares) {
  std::vector<double> weights(shares.size(), 1);
  Vector factors = {1, 1, 1};
  for (int round = 0; round < kRounds; ++round) {
    factors = weighted_fit(shares, weights);
    for (double& factor : factors) factor = std::max(factor, 0.0);
    for (std::size_t row = 0; row < shares.size(); ++row) {
      const double error = std::abs(dot(factors, shares[row]) - 1);
      weights[row] = kSmallError / std::max(kSmallError, error);
    }
  }
  return factors;
}

Vector shares_of(const TimedCollective& timed, const TimeParts& parts) {
  return {parts.latency / timed.measured, parts.transfer / timed.measured,
          parts.fill / timed.measured};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// A knot that stands out from both neighbours by this factor is an accident of its measurement.
constexpr double kSpike = 1.5;

std::vector<SizeCorrection> without_spikes(std::vector<SizeCorrection> knots) {
  const std::vector<SizeCorrection> given = knots;
  for (std::size_t i = 1; i + 1 < given.size(); ++i) {
    const auto [low, high] = std::minmax(given[i - 1].factor, given[i + 1].factor);
    const bool sticks_out = given[i].factor > kSpike * high || given[i].factor < low / kSpike;
    if (sticks_out) knots[i].factor = std::sqrt(low * high);
  }
  return knots;
}

std::vector<SizeCorrection> corrections_of(const std::vector<TimedCollective>& timed,
                                           const CollectiveTuning& tuning, double octaves) {
  if (octaves <= 0) octaves = timed.size() > kDenseRows ? kDenseOctaves : kSparseOctaves;
  std::map<long, std::pair<std::vector<double>, std::vector<double>>> bins;  // sizes, log errors
  for (const TimedCollective& one : timed) {
    const double size = std::log2(static_cast<double>(one.plan.call.bytes.value()));
    auto& [sizes, errors] = bins[std::lround(size / octaves)];
    sizes.push_back(size);
    errors.push_back(std::log(one.measured / time_alone(one.plan, tuning)));
  }
  std::vector<SizeCorrection> knots;
  for (const auto& [bin, values] : bins) {
    const auto bytes = static_cast<std::int64_t>(std::llround(std::exp2(median(values.first))));
    knots.push_back({Bytes(bytes), std::exp(median(values.second))});
  }
  return without_spikes(std::move(knots));
}

}  // namespace

GroupCalibration fit_group(const std::vector<TimedCollective>& timed,
                           const CollectiveConstants& constants, double octaves) {
  assert(!timed.empty());
  const CollectivePlan& first = timed.front().plan;
  GroupCalibration group{.collective = first.call.kind,
                         .ranks = first.shape.ranks,
                         .nodes = first.shape.nodes,
                         .reduces_in_switch = first.call.reduces_in_switch};
  std::map<std::pair<CollectiveAlgorithm, CollectiveProtocol>, Shares> ways;
  for (const TimedCollective& one : timed) {
    const TimedWay way = time_parts(one.plan, constants);
    const NcclExpectation& choice = one.plan.ways[way.way].choice;
    ways[{choice.algorithm, choice.protocol}].push_back(shares_of(one, way.parts));
  }
  for (const auto& [way, shares] : ways) {
    const Vector factors = factors_of(shares);
    double error = 0;
    for (const Vector& share : shares) error += std::abs(dot(factors, share) - 1);
    group.protocols.push_back({.algorithm = way.first,
                               .protocol = way.second,
                               .latency_factor = factors[0],
                               .transfer_factor = factors[1],
                               .fill_factor = factors[2],
                               .rows = static_cast<int>(shares.size()),
                               .residual_pct = 100 * error / static_cast<double>(shares.size())});
  }
  group.corrections = corrections_of(timed, CollectiveTuning(constants, {group}), octaves);
  return group;
}

Seconds launch_floor(const std::vector<TimedCollective>& timed,
                     const CollectiveConstants& constants) {
  constexpr Bytes kSmall = 1_KiB;
  const auto size = [](const TimedCollective& one) { return one.plan.call.bytes; };
  const Bytes smallest = size(*std::ranges::min_element(timed, {}, size));
  std::vector<double> excess, latencies;
  for (const TimedCollective& one : timed) {
    if (size(one) > std::max(kSmall, smallest)) continue;
    const Seconds latency = time_parts(one.plan, constants).time();
    excess.push_back((one.measured - latency).value());
    latencies.push_back(latency.value());
  }
  const double launch = median(excess);
  constexpr double kNoticeable = 0.5;
  return Seconds(launch > kNoticeable * median(latencies) ? launch : 0);
}

}  // namespace tessera
