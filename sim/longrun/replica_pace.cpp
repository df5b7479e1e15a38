#include "sim/longrun/replica_pace.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "workloads/sharding.h"

namespace tessera {
namespace {

/// The schedule runs micro-batches in groups of so many.
std::int64_t group_of_schedule(const StepOptions& step) {
  if (step.schedule == PipelineSchedule::interleaved_1f1b) return step.layout.pipeline;
  return step.schedule == PipelineSchedule::dualpipe ? 2 : 1;
}

/// A point of a line of step times.
struct TimeAt {
  double x = 0, seconds = 0;
};

/// On the straight line through the two points nearest to `x`. `points` ascend and are not empty.
double time_at(const std::vector<TimeAt>& points, double x) {
  if (points.size() == 1) return points.front().seconds;
  auto above = std::ranges::lower_bound(points, x, {}, &TimeAt::x);
  above = std::clamp(above, points.begin() + 1, points.end() - 1);
  const TimeAt& a = *(above - 1);
  const TimeAt& b = *above;
  return std::lerp(a.seconds, b.seconds, (x - a.x) / (b.x - a.x));
}

/// What the time of a step is linear in.
double size_of(const StepOptions& step, int left, BatchWithout batch) {
  return batch == BatchWithout::kept ? static_cast<double>(micro_batches_without(step, left, batch))
                                     : static_cast<double>(left);
}

}  // namespace

int replicas_that_leave_together(const StepOptions& step, bool alive) {
  const ParallelLayout& layout = step.layout;
  const auto data_ranks = [&](int ranks, int others) { return ranks / std::gcd(ranks, others); };
  int together = data_ranks(layout.expert * layout.expert_parts(), layout.context * layout.tensor);
  const bool in_groups = shard_ranks(step) < layout.replicas();
  if (in_groups || alive)
    together = std::lcm(together, data_ranks(shard_ranks(step), layout.context));
  return alive && together >= layout.data ? 0 : std::min(together, layout.data);
}

std::int64_t micro_batches_without(const StepOptions& step, int left, BatchWithout batch) {
  const std::int64_t whole = step.micro_batches();
  if (batch == BatchWithout::smaller || left == step.layout.data) return whole;
  const std::int64_t group = group_of_schedule(step);
  const std::int64_t all = whole * step.layout.data;
  return (all + left * group - 1) / (left * group) * group;
}

std::vector<int> replicas_to_simulate(const StepOptions& step, const std::vector<int>& left,
                                      BatchWithout batch) {
  constexpr std::size_t kMost = 4;
  constexpr std::int64_t kMostTimes = 8;  // as many micro-batches; behind that, in proportion
  std::vector<int> all;
  double before = size_of(step, step.layout.data, batch);
  for (const int replicas : left) {
    const double size = size_of(step, replicas, batch);
    const bool too_many = batch == BatchWithout::kept && !all.empty() &&
                          size > static_cast<double>(kMostTimes * step.micro_batches());
    if (size != before && !too_many) all.push_back(replicas);
    before = size;
  }
  if (all.size() <= kMost) return all;
  std::vector<int> chosen;
  for (std::size_t i = 0; i < kMost; ++i) chosen.push_back(all[i * (all.size() - 1) / (kMost - 1)]);
  return chosen;
}

std::vector<double> pace_without(const StepOptions& step, Seconds whole,
                                 const std::vector<StepWithout>& steps, int together,
                                 BatchWithout batch) {
  std::vector<TimeAt> points = {{size_of(step, step.layout.data, batch), whole.value()}};
  for (const StepWithout& of : steps)
    points.push_back({size_of(step, of.left, batch), of.step.value()});
  std::ranges::sort(points, {}, &TimeAt::x);
  const int groups = step.layout.data / together;
  std::vector<double> paces(static_cast<std::size_t>(groups) + 1, 0);
  for (int group = 1; group < groups; ++group) {
    const int left = group * together;
    const double time = time_at(points, size_of(step, left, batch));
    const double share =
        batch == BatchWithout::kept ? 1 : static_cast<double>(left) / step.layout.data;
    paces[static_cast<std::size_t>(group)] = std::min(1.0, share * whole.value() / time);
  }
  paces.back() = 1;
  return paces;
}

}  // namespace tessera
