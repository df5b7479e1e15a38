#include "sim/reliability/run_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

namespace tessera {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - std::floor(place));
}

SeedFigure figure_over(const std::vector<RunRecord>& runs,
                       const std::function<double(const RunRecord&)>& value) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const RunRecord& run : runs) values.push_back(value(run));
  return figure_of(std::move(values));
}

std::optional<SeedFigure> hours_to_failure(const std::vector<RunRecord>& runs) {
  std::vector<double> values;
  double at_risk = 0, stops = 0;
  for (const RunRecord& run : runs) {
    at_risk += in_hours(run.at_risk());
    stops += static_cast<double>(run.stops);
    if (run.stops > 0) values.push_back(in_hours(run.at_risk()) / static_cast<double>(run.stops));
  }
  if (values.empty()) return std::nullopt;
  SeedFigure figure = figure_of(std::move(values));
  figure.mean = at_risk / stops;
  return figure;
}

std::vector<MeanCauseLoss> mean_causes(const std::vector<RunRecord>& runs) {
  std::vector<MeanCauseLoss> causes;
  for (std::size_t i = 0; i < runs.front().causes.size(); ++i) {
    MeanCauseLoss mean{.cause = runs.front().causes[i].cause};
    const double share = 1 / static_cast<double>(runs.size());
    for (const RunRecord& run : runs) {
      const CauseLoss& of = run.causes[i];
      mean.events += share * static_cast<double>(of.events);
      mean.stops += share * static_cast<double>(of.stops);
      mean.lost_h += share * in_hours(of.lost);
      mean.slow_h += share * in_hours(of.slow);
      mean.detection_h += share * in_hours(of.detection);
      mean.restart_h += share * in_hours(of.restart);
      mean.waiting_h += share * in_hours(of.waiting);
    }
    causes.push_back(std::move(mean));
  }
  std::ranges::stable_sort(causes, std::greater(), &MeanCauseLoss::total_h);
  return causes;
}

}  // namespace

SeedFigure figure_of(std::vector<double> values) {
  SeedFigure figure;
  for (const double value : values) figure.mean += value / static_cast<double>(values.size());
  std::ranges::sort(values);
  figure.low = percentile(values, 0.1);
  figure.high = percentile(values, 0.9);
  return figure;
}

std::vector<RunRecord> simulate_runs(const RunPlan& plan, std::uint64_t first_seed, int seeds) {
  check_plan(plan);
  std::vector<RunRecord> runs;
  runs.reserve(static_cast<std::size_t>(seeds));
  for (int i = 0; i < seeds; ++i)
    runs.push_back(simulate_run(plan, first_seed + static_cast<std::uint64_t>(i)));
  return runs;
}

RunStatistics statistics_of(const std::vector<RunRecord>& runs) {
  const auto hours = [&](Micros RunRecord::*part) {
    return figure_over(runs, [part](const RunRecord& run) { return in_hours(run.*part); });
  };
  const auto count = [&](std::int64_t RunRecord::*part) {
    return figure_over(runs,
                       [part](const RunRecord& run) { return static_cast<double>(run.*part); });
  };
  RunStatistics all;
  all.seeds = static_cast<int>(runs.size());
  all.effective_ratio = figure_over(runs, &RunRecord::effective_ratio);
  all.stops = count(&RunRecord::stops);
  all.checkpoints = count(&RunRecord::checkpoints);
  all.hours_to_failure = hours_to_failure(runs);
  all.node_availability = figure_over(runs, &RunRecord::node_availability);
  all.node_hours_out = hours(&RunRecord::node_time_out);
  all.wall = hours(&RunRecord::wall);
  all.useful = hours(&RunRecord::useful);
  all.slow = hours(&RunRecord::slow);
  all.lost = hours(&RunRecord::lost);
  all.checkpoint = hours(&RunRecord::checkpoint);
  all.detection = hours(&RunRecord::detection);
  all.restart = hours(&RunRecord::restart);
  all.waiting = hours(&RunRecord::waiting);
  all.fewer = hours(&RunRecord::fewer);
  all.least_replicas = std::ranges::min(runs, {}, &RunRecord::least_replicas).least_replicas;
  all.causes = mean_causes(runs);
  return all;
}

}  // namespace tessera
