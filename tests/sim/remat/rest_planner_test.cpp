#include "sim/remat/tessera/rest_planner.h"

#include <gtest/gtest.h>

#include "sim/remat/baselines/baselines.h"
#include "tests/sim/remat/sample_graphs.h"

namespace tessera::remat {
namespace {

/// Four operators in a chain whose results the last two read; `done` of them have run, and what the
/// first `gone` made is not on the device any more.
Graph rest(OpId done, int gone) {
  std::vector<OpSpec> ops;
  for (int i = 0; i < 4; ++i) {
    OpSpec op{.name = "f" + std::to_string(i), .time = 10, .out_bytes = {4}};
    if (i > 0) op.inputs = {i - 1};
    ops.push_back(op);
  }
  ops.push_back({.name = "b1", .time = 10, .inputs = {3, 2}, .out_bytes = {0}});
  ops.push_back({.name = "b0", .time = 10, .inputs = {1, 0}, .out_bytes = {0}});
  StepProgress progress{.done = done, .gone = {}};
  for (int i = 0; i < gone; ++i) progress.gone.push_back(i);
  return {"rest", ops, {}, 0, 4, progress};
}

TEST(RestOfAStep, WhatHasRunCostsNothingMoreAndHasNoPeak) {
  const Graph graph = rest(4, 0);
  EXPECT_EQ(graph.base_time(), 20);
  const PlannedSchedule planned = plan_rest(graph, {.budget = 16, .link = {}});
  const ReplayResult cost = replay(graph, planned.schedule, std::nullopt);
  EXPECT_EQ(cost.time, 20);
  EXPECT_EQ(cost.peak, 16);
}

TEST(RestOfAStep, ARoomOfThreeTensorsHasOneMadeAgain) {
  const Graph graph = rest(4, 0);
  const PlannedSchedule planned = plan_rest(graph, {.budget = 12, .link = {}});
  const ReplayResult cost = replay(graph, planned.schedule, std::nullopt);
  EXPECT_LE(cost.peak, 12);
  EXPECT_EQ(cost.recompute, 10);  // of the second tensor from the first, or of the first
}

TEST(RestOfAStep, WhatIsGoneIsMadeAgain) {
  const Graph graph = rest(4, 2);
  const PlannedSchedule planned = plan_rest(graph, {.budget = 16, .link = {}});
  const ReplayResult cost = replay(graph, planned.schedule, std::nullopt);
  EXPECT_EQ(cost.recompute, 20);
}

TEST(RestOfAStep, PlansOfLargeGraphsFit) {
  const Graph graph = test::transformer_graph(10'000);
  const ByteCount peak = base_peak(graph);
  for (const double share : {0.9, 0.6, 0.4}) {
    const auto budget = static_cast<ByteCount>(share * static_cast<double>(peak));
    for (const bool swaps : {false, true}) {
      PlanRequest request{.budget = budget};
      if (swaps) request.link = HostLink{.bytes_per_ns = 25, .latency = 10'000};
      const PlannedSchedule planned = plan_rest(graph, request);
      const ReplayResult cost = replay(graph, planned.schedule, request.link);
      EXPECT_LE(cost.peak, budget);
      EXPECT_LT(static_cast<double>(cost.time), 1.15 * static_cast<double>(graph.base_time()));
    }
  }
}

// One price takes all layers' tensors of a kind or none.
TEST(RestOfAStep, NoSlowerThanRelievingPeaksOneByOne) {
  const Graph graph = test::transformer_graph(1000);
  for (const double share : {0.8, 0.5, 0.4}) {
    const PlanRequest request{
        .budget = static_cast<ByteCount>(share * static_cast<double>(base_peak(graph)))};
    const ReplayResult rest = replay(graph, plan_rest(graph, request).schedule, std::nullopt);
    const ReplayResult relieved =
        replay(graph, CapuchinPlanner().plan(graph, request).schedule, std::nullopt);
    EXPECT_LE(rest.peak, request.budget);
    EXPECT_LE(rest.time, relieved.time);
    const ReplayResult priced =
        replay(graph, plan_by_prices(graph, request).schedule, std::nullopt);
    EXPECT_LT(rest.time, priced.time);
  }
}

TEST(RestOfAStep, RelievingPeaksMakesAgainWhatIsGone) {
  const Graph graph = rest(4, 2);
  for (const bool copies : {false, true}) {
    PlanRequest request{.budget = 12};
    if (copies) request.link = HostLink{.bytes_per_ns = 1};
    const PlannedSchedule planned = CapuchinPlanner().plan(graph, request);
    const ReplayResult cost = replay(graph, planned.schedule, request.link);
    EXPECT_EQ(cost.recompute, 20);
    EXPECT_LE(cost.peak, 12);
  }
}

// From the largest working set up a plan exists that copies everything between any two operators.
TEST(RestOfAStep, WithCopiesALargeGraphHasAPlanAtItsLowerBound) {
  const Graph graph = test::transformer_graph(300);
  PlanRequest request{.budget = lower_bound(graph).bytes};
  request.link = HostLink{.bytes_per_ns = 12, .latency = 10'000};
  const double share = 0.05;  // of the sweeps: as few as a graph of 6,000 operators gets
  const PlannedSchedule planned = plan_by_prices(graph, request, share);
  EXPECT_LE(replay(graph, planned.schedule, request.link).peak, request.budget);
}

}  // namespace
}  // namespace tessera::remat
