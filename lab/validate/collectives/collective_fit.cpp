#include "lab/validate/collectives/collective_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace tessera {
namespace {

constexpr std::size_t kDenseRows = 200;
constexpr int kPasses = 8;
constexpr double kFirstStep = 0.25;
constexpr double kStepShrink = 0.7;
constexpr double kLeastGain = 1e-6;

/// A share of the links' rate cannot pass 1, so that no fit beats them.
constexpr double kMostShare = 1.0;

using Sweeps = std::vector<std::vector<const PlannedRun*>>;

std::vector<const PlannedRun*> thinned(const std::vector<const PlannedRun*>& sweep) {
  if (sweep.size() <= kDenseRows) return sweep;
  std::map<long, std::vector<const PlannedRun*>> bins;
  for (const PlannedRun* run : sweep) {
    const double size = std::log2(static_cast<double>(run->plan.call.bytes.value()));
    bins[std::lround(size * 2)].push_back(run);
  }
  std::vector<const PlannedRun*> medians;
  for (auto& [bin, rows] : bins) {
    std::ranges::sort(rows, {}, [](const PlannedRun* run) {
      return run->measured.value() / static_cast<double>(run->plan.call.bytes.value());
    });
    medians.push_back(rows[rows.size() / 2]);
  }
  return medians;
}

/// The sweep without its small sizes where even the shortest row takes a multiple of what NCCL's
/// tuner expects: that floor is the launch, which no latency of the GPU should explain.
std::vector<const PlannedRun*> without_launch_floor(const std::vector<const PlannedRun*>& sweep) {
  constexpr double kMultiple = 2;
  constexpr Bytes kSmall(1'000'000);
  const PlannedRun* shortest =
      *std::ranges::min_element(sweep, {}, [](const PlannedRun* run) { return run->measured; });
  const Seconds time = time_parts(shortest->plan, nccl_constants()).time();
  const bool has_own_floor = shortest->launch == "kineto" || shortest->launch == kOneThread;
  if (has_own_floor || shortest->measured < time * kMultiple) return sweep;
  std::vector<const PlannedRun*> rest;
  for (const PlannedRun* run : sweep) {
    if (run->plan.call.bytes >= kSmall) rest.push_back(run);
  }
  return rest;
}

Sweeps sweeps_of(const std::vector<PlannedRun>& runs) {
  std::map<std::string, std::vector<const PlannedRun*>> by_name;
  for (const PlannedRun& run : runs) by_name[run.sweep].push_back(&run);
  Sweeps sweeps;
  for (const auto& [name, sweep] : by_name) {
    sweeps.push_back(thinned(without_launch_floor(sweep)));
    if (sweeps.back().empty()) sweeps.pop_back();
  }
  return sweeps;
}

/// Everything that is fitted, as one row of numbers.
struct Point {
  FittedConstants fitted;

  static constexpr std::array<Seconds LaunchStyles::*, 4> kStyles = {
      &LaunchStyles::mpi, &LaunchStyles::torch, &LaunchStyles::kineto_floor,
      &LaunchStyles::launch_of_a_gpu};
  static constexpr std::size_t kSize = kConstantNames.size() + kStyles.size();
  double get(std::size_t i) const {
    if (i < kConstantNames.size()) return fitted.constants.*kConstantNames[i].value;
    return (fitted.launch.*kStyles[i - kConstantNames.size()]).value();
  }
  void set(std::size_t i, double value) {
    if (i < kConstantNames.size()) {
      const bool share = kConstantNames[i].name.find("share") != std::string_view::npos;
      fitted.constants.*kConstantNames[i].value = share ? std::min(value, kMostShare) : value;
      return;
    }
    fitted.launch.*kStyles[i - kConstantNames.size()] = Seconds(value);
  }
};

/// A fit by size alone follows the larger half of its sweeps, wherever the others are, and stops
/// at points where one row is met exactly although two coordinates together would help; decision
/// 118.
double cost_of(double log_ratio) {
  return std::hypot(log_ratio, kMissOfASmallCollective) - kMissOfASmallCollective;
}

double size_of(double log_ratio) {
  return std::abs(log_ratio);
}

/// Mean over the sweeps, which weigh alike, of their mean.
double mean_over(const Sweeps& sweeps, const FittedConstants& fitted, double (*cost)(double)) {
  double sum = 0;
  for (const auto& sweep : sweeps) {
    double costs = 0;
    for (const PlannedRun* run : sweep) {
      const Seconds time = predicted_time(*run, fitted.constants, fitted.launch);
      costs += cost(std::log(time / run->measured));
    }
    sum += costs / static_cast<double>(sweep.size());
  }
  return sweeps.empty() ? 0 : sum / static_cast<double>(sweeps.size());
}

/// Multiplies coordinate `i` by `factor` as long as that helps.
void walk(const Sweeps& sweeps, std::size_t i, double factor, Point& point) {
  constexpr int kMostMoves = 40;
  for (int move = 0; move < kMostMoves; ++move) {
    Point next = point;
    next.set(i, point.get(i) * factor);
    next.fitted.mean_cost = mean_over(sweeps, next.fitted, cost_of);
    if (next.fitted.mean_cost > point.fitted.mean_cost - kLeastGain) return;
    point = next;
  }
}

}  // namespace

Seconds predicted_time(const PlannedRun& run, const CollectiveConstants& constants,
                       const LaunchStyles& launch) {
  const Seconds alone = time_parts(run.plan, constants).time();
  const bool reduces = run.plan.call.kind != CollectiveKind::send_recv;
  return launch.measured(alone, run.launch, run.ranks, reduces);
}

FittedConstants fit_constants(const std::vector<PlannedRun>& runs,
                              const CollectiveConstants& start) {
  const Sweeps sweeps = sweeps_of(runs);
  Point point;
  point.fitted.constants = start;
  point.fitted.mean_cost = mean_over(sweeps, point.fitted, cost_of);
  double step = kFirstStep;
  for (int pass = 0; pass < kPasses; ++pass, step *= kStepShrink) {
    for (std::size_t i = 0; i < Point::kSize; ++i) {
      walk(sweeps, i, 1 + step, point);
      walk(sweeps, i, 1 / (1 + step), point);
    }
  }
  point.fitted.mean_log_error = mean_over(sweeps, point.fitted, size_of);
  return point.fitted;
}

}  // namespace tessera
