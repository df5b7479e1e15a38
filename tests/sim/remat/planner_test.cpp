#include "sim/remat/planner.h"

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/remat/exact/exact_search.h"
#include "sim/remat/tessera/tessera_planner.h"
#include "tests/sim/remat/event_replay.h"
#include "tests/sim/remat/sample_graphs.h"

namespace tessera::remat {
namespace {

PlanResult plan(const Graph& graph, ByteCount budget, const std::optional<HostLink>& link = {},
                const char* planner = "tessera") {
  return make_plan(*make_planner(planner), graph, {.budget = budget, .link = link});
}

struct Optimum {
  int layers;
  ByteCount memory;
  Nanoseconds time;
};

TEST(Chains, ReachTheOptimaOfTheMixedIntegerProgram) {
  // Unit chains (f = 1, b = 2, loss 1), optima of Checkmate's program as solved by HiGHS.
  for (const Optimum& chain : {Optimum{3, 3, 11}, Optimum{3, 4, 10}, Optimum{4, 3, 16},
                               Optimum{4, 4, 14}, Optimum{4, 5, 13}}) {
    const Graph graph = test::chain_graph(chain.layers, 1, 2, 1, 1);
    EXPECT_EQ(plan(graph, chain.memory).cost.time, chain.time) << chain.layers << chain.memory;
    EXPECT_EQ(exact_recompute(graph, chain.memory, false)->time, chain.time);
  }
}

TEST(Chains, OfThreeLayersWithAndWithoutSwapping) {
  const Graph graph = test::chain_graph(3, 4, 8, 4, 2);
  EXPECT_EQ(plan(graph, 10).cost.time, 41);
  EXPECT_EQ(plan(graph, 12).cost.time, 41);
  EXPECT_EQ(plan(graph, 14).cost.time, 37);
  EXPECT_EQ(plan(graph, 12, HostLink{.bytes_per_ns = 1}).cost.time, 37);
  EXPECT_EQ(plan(graph, 8, HostLink{.bytes_per_ns = 4}).cost.time, 39);
}

TEST(Chains, BelowWhatRecomputationCanDoSayTheLowestPeak) {
  // 8 is the working set, but recomputation alone needs 10.
  const Graph graph = test::chain_graph(3, 4, 8, 4, 2);
  const PlanResult result = plan(graph, 9);
  EXPECT_FALSE(result.feasible);
  EXPECT_EQ(result.lower_bound.bytes, 8);
  EXPECT_EQ(result.cost.peak, 10);
}

TEST(Infeasible, BelowTheWorkingSetNothingIsPlanned) {
  const Graph graph = test::chain_graph(3, 4, 8, 4, 2);
  const PlanResult result = plan(graph, 7, HostLink{.bytes_per_ns = 1});
  EXPECT_FALSE(result.feasible);
  EXPECT_TRUE(result.schedule.empty());
  EXPECT_GE(result.lower_bound.op, 0);
}

TEST(HostMemory, IsRespected) {
  // Swapping hides everything at 12 bytes, but not without host memory.
  const Graph graph = test::chain_graph(3, 4, 8, 4, 2);
  PlanRequest request{.budget = 12, .link = HostLink{.bytes_per_ns = 1}, .host_bytes = 3};
  const PlanResult poor = make_plan(TesseraPlanner(), graph, request);
  EXPECT_TRUE(poor.feasible);
  EXPECT_EQ(poor.cost.host_peak, 0);
  EXPECT_EQ(poor.cost.time, 41);
  request.host_bytes = 4;
  EXPECT_EQ(make_plan(TesseraPlanner(), graph, request).cost.time, 37);
}

TEST(Planners, AreAllKnownByName) {
  EXPECT_EQ(planner_names().front(), "tessera");
  for (const std::string& name : planner_names()) EXPECT_NE(make_planner(name), nullptr);
  EXPECT_THROW(make_planner("nobody"), InputError);
}

TEST(Planners, NeverExceedABudgetThatTheyCallFeasible) {
  const Graph graph = test::chain_graph(7, 3, 5, 4, 4);
  for (const std::string& name : planner_names()) {
    for (ByteCount budget = lower_bound(graph).bytes; budget <= base_peak(graph); budget += 4) {
      const PlanResult result = plan(graph, budget, HostLink{.bytes_per_ns = 1}, name.c_str());
      const bool always = name == "tessera" || name == "libra" || budget == base_peak(graph);
      EXPECT_TRUE(result.feasible || !always) << name << budget;
      EXPECT_TRUE(!result.feasible || result.cost.peak <= budget) << name << budget;
    }
  }
}

TEST(Planners, ChenKeepsEveryThirdOfNineSteppingStones) {
  // The loss reads the last of 9 equal layers; one extra forward pass but for what is kept.
  const Graph graph = test::chain_graph(9, 1, 2, 1, 1);
  const PlanResult result = plan(graph, base_peak(graph), {}, "chen_sqrt");
  EXPECT_LT(result.cost.peak, base_peak(graph));
  EXPECT_GT(result.cost.recompute, 0);
  EXPECT_LE(result.cost.recompute, 9);
}

TEST(Planners, GiveTheSameBytesAgain) {
  const Graph graph = test::transformer_graph(120);
  const ByteCount budget = base_peak(graph) / 2;
  for (const char* name : {"tessera", "libra", "dtr", "capuchin"}) {
    const HostLink link{.bytes_per_ns = 12, .latency = 10'000};
    EXPECT_EQ(plan(graph, budget, link, name).schedule, plan(graph, budget, link, name).schedule);
  }
}

/// 250,000 operators are searched in fewer steps than 10,000, and must not pay for it.
TEST(Planners, OverheadDoesNotGrowWithTheGraph) {
  const auto overhead = [](int ops) {
    const Graph graph = test::transformer_graph(ops);
    const PlanRequest request{.budget = base_peak(graph) / 2, .effort = Effort::fast};
    const PlanResult result = make_plan(TesseraPlanner(), graph, request);
    EXPECT_TRUE(result.feasible);
    return static_cast<double>(result.cost.time) / static_cast<double>(graph.base_time());
  };
  EXPECT_LE(overhead(250'000), 1.02 * overhead(10'000));
}

TEST(Budgets, OfACurveAreAllMet) {
  const Graph graph = test::transformer_graph(270);
  std::vector<ByteCount> budgets;
  for (int k = 0; k <= 10; ++k)
    budgets.push_back(lower_bound(graph).bytes +
                      (base_peak(graph) - lower_bound(graph).bytes) * k / 10);
  const PlanRequest request{.link = HostLink{.bytes_per_ns = 12, .latency = 10'000}};
  const auto plans = plan_budgets(graph, budgets, request);
  for (std::size_t k = 0; k < budgets.size(); ++k)
    EXPECT_LE(replay(graph, plans[k].schedule, request.link).peak, budgets[k]);
  EXPECT_EQ(replay(graph, plans.back().schedule, request.link).time, graph.base_time());
}

/// The guarantees, on any graph. The long version runs 10^5 graphs (results/remat).
TEST(Guarantees, HoldOnRandomGraphs) {
  int recompute_plans = 0;
  for (int k = 0; k < 1500; ++k) {
    Random random(static_cast<std::uint64_t>(k));
    const Graph graph = test::random_graph(random);
    const ByteCount least = lower_bound(graph).bytes;
    const ByteCount most = std::max(least, base_peak(graph));
    PlanRequest request;
    request.budget = k % 4 == 0 ? least : least + random.below(static_cast<int>(most - least) + 1);
    request.effort = k % 16 == 0 ? Effort::thorough : Effort::fast;
    if (k % 3 != 0)
      request.link =
          HostLink{static_cast<double>(1 + random.below(4)), random.below(3), random.below(2) == 0};
    SCOPED_TRACE(k);
    const PlanResult result = make_plan(TesseraPlanner(), graph, request);
    ASSERT_TRUE(result.feasible || !request.link);
    if (!result.feasible) {
      EXPECT_GT(result.cost.peak, request.budget);
      continue;
    }
    ASSERT_LE(result.cost.peak, request.budget);
    ASSERT_LE(result.time_bound, result.cost.time);
    const test::EventReplay events = test::replay_events(graph, result.schedule, request.link);
    ASSERT_EQ(events.time, result.cost.time);
    ASSERT_LE(events.peak, request.budget);
    if (request.link) continue;
    const auto optimum = exact_recompute(graph, request.budget, false);
    ASSERT_TRUE(optimum);
    ASSERT_GE(result.cost.time, optimum->time);
    ASSERT_LE(result.time_bound, optimum->time);
    ++recompute_plans;
  }
  EXPECT_GT(recompute_plans, 300);
}

}  // namespace
}  // namespace tessera::remat
