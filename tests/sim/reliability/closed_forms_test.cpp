// Simulated runs against formulas that hold for them. Means over seeds must lie within four
// standard errors: by chance, once in 16,000 such tests; with fixed seeds, always or never.
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/reliability/checkpoint_interval.h"
#include "sim/reliability/cluster_run.h"
#include "sim/reliability/failure_source.h"
#include "sim/reliability/run_statistics.h"
#include "sim/reliability/spare_count.h"

namespace tessera {
namespace {

constexpr Seconds kHour = Seconds(3600);

/// `nodes` that fail together once in `mean` on average, for a year.
RunPlan failing_plan(int nodes, Seconds mean) {
  RunPlan plan;
  plan.nodes = nodes;
  plan.length = days_of(365);
  plan.interval = to_micros(kHour);
  plan.failures.classes = {{.name = "node", .per_node_day = 86'400 / mean.value() / nodes}};
  return plan;
}

/// Expects that the mean of `value` over 60 seeds agrees with `expected`.
void expect_mean(const RunPlan& plan, const std::function<double(const RunRecord&)>& value,
                 double expected) {
  constexpr int kSeeds = 60;
  double sum = 0, squares = 0;
  for (const RunRecord& run : simulate_runs(plan, 1, kSeeds)) {
    sum += value(run);
    squares += value(run) * value(run);
  }
  const double mean = sum / kSeeds;
  const double error = std::sqrt((squares / kSeeds - mean * mean) / (kSeeds - 1));
  EXPECT_NEAR(mean, expected, 4 * error);
  // The test could tell a deviation of 2 % from it.
  EXPECT_LT(4 * error, 0.02 * expected);
}

TEST(ClosedForms, DalysExpectedTimeWithExponentialFailures) {
  for (const double mean_h : {3.0, 12.0}) {
    for (const double interval_min : {10.0, 60.0, 150.0}) {
      RunPlan plan = failing_plan(100, kHour * mean_h);
      plan.interval = to_micros(Seconds(interval_min * 60));
      plan.checkpoint = to_micros(Seconds(120));
      plan.restart = to_micros(Seconds(900));
      SCOPED_TRACE(interval_min);
      expect_mean(plan, &RunRecord::effective_ratio,
                  expected_effective_ratio(to_seconds(plan.interval), Seconds(120), Seconds(900),
                                           kHour * mean_h));
    }
  }
}

TEST(ClosedForms, TimeToFailureIsOneOverNodesTimesRate) {
  RunPlan plan = failing_plan(2048, kHour * 2);
  plan.restart = to_micros(Seconds(600));
  expect_mean(
      plan,
      [](const RunRecord& run) { return in_hours(run.at_risk()) / static_cast<double>(run.stops); },
      2.0);
}

TEST(ClosedForms, YoungsAndDalysIntervalsAreAsGoodAsTheBest) {
  RunPlan plan = failing_plan(64, kHour * 8);
  plan.checkpoint = to_micros(Seconds(60));
  plan.restart = to_micros(Seconds(300));
  const Seconds young = young_interval(Seconds(60), kHour * 8);
  // sqrt(2 * 60 s * 28,800 s)
  EXPECT_NEAR(young.value(), 1859.0, 0.1);
  // 1859.03 * (1 + sqrt(60 / 57,600) / 3 + 60 / 57,600 / 9) - 60
  EXPECT_NEAR(daly_interval(Seconds(60), kHour * 8).value(), 1819.25, 0.1);
  const BestInterval best = best_interval(plan, young * 2.5, 1, 20);
  EXPECT_GT(best.interval, to_micros(young * 0.5));
  EXPECT_LT(best.interval, to_micros(young * 2.0));
  plan.interval = to_micros(young);
  const RunStatistics at_young = statistics_of(simulate_runs(plan, 1, 20));
  EXPECT_NEAR(at_young.effective_ratio.mean, best.effective_ratio, 0.002);
}

TEST(ClosedForms, DalysIntervalIsTheTimeToFailureWhereCheckpointsTakeLong) {
  EXPECT_EQ(daly_interval(kHour * 3, kHour), kHour);
}

/// Stationary probability that more than `spares` of `nodes` + `spares` nodes are out, each failing
/// with `rate` while in service, with `crews` that each repair with rate 1: a birth-death chain.
double short_of_nodes(int nodes, int spares, int crews, double rate) {
  std::vector<double> weight = {1};
  double all = 1, short_of = 0;
  for (int out = 1; out <= nodes + spares; ++out) {
    const double born = (nodes + spares - out + 1) * rate;
    weight.push_back(weight.back() * born / std::min(out, crews));
    all += weight.back();
    if (out > spares) short_of += weight.back();
  }
  return short_of / all;
}

TEST(ClosedForms, WaitsOfRepairWithCrewsAndSparesAreThoseOfTheQueue) {
  for (const int crews : {1, 2, 12}) {
    for (const int spares : {0, 2}) {
      RunPlan plan;
      plan.nodes = 10;
      plan.spares = spares;
      plan.repair_crews = crews;
      plan.length = days_of(3650);
      plan.interval = to_micros(kHour * 24);
      // 0.4 failures of all nodes in the mean time of a repair, 12 h.
      plan.failures.classes = {{.name = "node", .per_node_day = 0.08, .repair = kHour * 12}};
      SCOPED_TRACE(crews * 100 + spares);
      constexpr int kSeeds = 60;
      const double expected = short_of_nodes(10, spares, crews, 0.04);
      double sum = 0, squares = 0;
      for (const RunRecord& run : simulate_runs(plan, 1, kSeeds)) {
        const double share = run.waiting / run.wall;
        sum += share;
        squares += share * share;
      }
      const double mean = sum / kSeeds;
      const double error = std::sqrt((squares / kSeeds - mean * mean) / (kSeeds - 1));
      EXPECT_NEAR(mean, expected, 4 * error);
      EXPECT_LT(4 * error, 0.1 * expected);
    }
  }
}

TEST(ClosedForms, AsManySparesAsThePoissonQuantileSays) {
  RunPlan plan = failing_plan(200, kHour * 4);
  plan.failures.classes[0].repair = kHour * 48;
  // 48 / 4 = 12 nodes out, of 800 h in service each: 12 / 1.06.
  EXPECT_NEAR(nodes_out(plan.failures, 200).mean, 12 / 1.06, 1e-9);
  const int spares = spares_for(plan.failures, 200, 0.99);
  const auto waiting_with = [&](int count) {
    plan.spares = count;
    return statistics_of(simulate_runs(plan, 1, 20)).waiting.mean / (365 * 24);
  };
  EXPECT_LT(waiting_with(spares), 0.01);
  EXPECT_GT(waiting_with(spares - 4), 0.01);
  EXPECT_EQ(spares_for(failing_plan(200, kHour).failures, 200, 0.99), 0);
}

TEST(ClosedForms, ASlowNodeSlowsForAsLongAsNobodyFindsIt) {
  RunPlan plan = failing_plan(10, kHour * 10);
  plan.failures.classes[0].slowdown = 2;
  plan.failures.classes[0].detection = kHour * 2;
  // Events come with rate 1/10 h and stay 2 h: at least one is there for 1 - exp(-2/10) of the
  // time, in which half of the training is missing.
  expect_mean(
      plan, [](const RunRecord& run) { return run.slow / run.wall; }, (1 - std::exp(-0.2)) / 2);
}

TEST(ClosedForms, SilentCorruptionTakesAllSinceTheCheckpointBefore) {
  RunPlan plan = failing_plan(10, kHour * 2400);
  plan.length = days_of(3650);
  plan.failures.classes[0].found_after = kHour * 5;
  // The checkpoint before is half an hour old on average; so much and five hours are lost.
  expect_mean(
      plan,
      [](const RunRecord& run) { return in_hours(run.lost) / static_cast<double>(run.stops); },
      5.5);
}

TEST(ClosedForms, TheFormulaOfRscIsWithinAPoint) {
  // (1 - N r (u + t / 2)) / (1 + w / t), arXiv:2410.21680, for 128 nodes at 6.5 per 1000 node-days,
  // a restart u of 10 min, an interval t of 60 min and a checkpoint w of 1 min.
  RunPlan plan;
  plan.nodes = 128;
  plan.length = days_of(365);
  plan.interval = to_micros(kHour);
  plan.checkpoint = to_micros(Seconds(60));
  plan.restart = to_micros(Seconds(600));
  plan.failures.classes = {{.name = "node", .per_node_day = 6.5e-3}};
  const double lost = 128 * 6.5e-3 * (10 + 30) / (24 * 60);
  const double expected = (1 - lost) / (1 + 1.0 / 60);
  const RunStatistics runs = statistics_of(simulate_runs(plan, 1, 20));
  EXPECT_NEAR(runs.effective_ratio.mean, expected, 0.005);
}

TEST(ClosedForms, ASwitchTakesItsNodes) {
  RunPlan plan = failing_plan(32, kHour * 20);
  plan.length = days_of(3650);
  plan.failures.classes[0].takes_nodes = 8;
  plan.failures.classes[0].repair = kHour;
  // A group is out for 1 h in 4 * 20 h of service, but for those that find it out: 1 / 81 of the
  // time.
  expect_mean(
      plan, [](const RunRecord& run) { return 1 - run.node_availability; }, 1.0 / 81);
}

/// Events of 1,000 nodes with a mean life of 100 days until `end`.
int events_until(double shape, Micros end) {
  FailureModel model;
  model.classes = {{.name = "part", .per_node_day = 0.01, .shape = shape}};
  FailureSource source(model, {}, 1000, 5);
  int events = 0;
  for (; source.next_date() < end; source.take()) ++events;
  return events;
}

TEST(ClosedForms, InfantsDieEarlyAndWornPartsLate) {
  // Share of first lives over after a tenth of the mean life: 1 - exp(-(0.1 Gamma(1 + 1/k))^k),
  // for k = 0.5: 0.361, 1: 0.0952, 3: 0.00071. Standard deviations are below 20.
  EXPECT_NEAR(events_until(1, days_of(10)), 1000 * 0.1, 40);  // renewals included
  const double infants = 1 - std::exp(-std::sqrt(0.1 * 2));
  EXPECT_GT(events_until(0.5, days_of(10)), 1000 * infants - 60);
  EXPECT_LT(events_until(3, days_of(10)), 10);
}

TEST(ClosedForms, RenewalsFollowTheMeanLifeInTheLongRun) {
  // t / m + (v - 1) / 2 renewals in t = 40 m, with the squared coefficient of variation v of the
  // life (Smith, 1954): 5 for shape 0.5, 1 for 1, 0.1321 for 3. Their variance is 40 v.
  for (const auto& [shape, v] : {std::pair(0.5, 5.0), std::pair(1.0, 1.0), std::pair(3.0, 0.1321)})
    EXPECT_NEAR(events_until(shape, days_of(4000)), 1000 * (40 + (v - 1) / 2),
                4 * std::sqrt(1000 * 40 * v))
        << shape;
}

TEST(ClosedForms, RatesAreThoseOfTheProjectedClustersOfRsc) {
  // RSC-1, 6.5 failures per 1000 node-days of 8 GPUs: the paper (arXiv:2410.21680) projects 1.8 h
  // between failures of a job on 16,384 GPUs and 0.23 h on 131,072.
  for (const auto& [gpus, hours] : {std::pair(16'384, 1.8), std::pair(131'072, 0.23)}) {
    RunPlan plan;
    plan.nodes = gpus / 8;
    plan.length = days_of(90);
    plan.interval = to_micros(Seconds(300));
    plan.restart = to_micros(Seconds(300));
    plan.failures.classes = {{.name = "node", .per_node_day = 6.5e-3}};
    const RunStatistics runs = statistics_of(simulate_runs(plan, 1, 5));
    EXPECT_NEAR(runs.hours_to_failure->mean, hours, 0.05 * hours);
  }
}

}  // namespace
}  // namespace tessera
