#include <stdexcept>

#include <gtest/gtest.h>

#include "sim/remat/schedule.h"
#include "tests/sim/remat/sample_graphs.h"

namespace tessera::remat {
namespace {

/// a -> b -> c; c reads a as well.
Graph three() {
  return Graph("three",
               {{.name = "a", .time = 4, .out_bytes = {10}},
                {.name = "b", .time = 3, .workspace = 2, .inputs = {0}, .out_bytes = {5}},
                {.name = "c", .time = 2, .inputs = {0, 1}, .out_bytes = {1}}},
               {2}, 100);
}

constexpr Step compute(OpId op) {
  return {Action::compute, op};
}

TEST(GraphProblem, IsTheSameWhateverTheNames) {
  const auto graph = [](const char* name, ByteCount bytes, ByteCount held) {
    return Graph(name, {{.name = name, .time = 4, .out_bytes = {bytes}}}, {0}, held);
  };
  EXPECT_TRUE(graph("a", 10, 1).same_problem(graph("b", 10, 1)));
  EXPECT_FALSE(graph("a", 10, 1).same_problem(graph("a", 11, 1)));
  EXPECT_FALSE(graph("a", 10, 1).same_problem(graph("a", 10, 2)));
  EXPECT_FALSE(three().same_problem(graph("three", 10, 100)));
}

TEST(Replay, CountsOutputsFromTheStartAndWorkspaceUntilTheEnd) {
  // Static 100; b runs with a 10, its output 5 and its workspace 2.
  const ReplayResult result = replay(three(), {compute(0), compute(1), compute(2)}, {});
  EXPECT_EQ(result.time, 9);
  EXPECT_EQ(result.peak, 117);
  EXPECT_EQ(result.peak_step, 1u);
  EXPECT_EQ(result.recompute, 0);
}

TEST(Replay, RunningAgainCostsTheOperatorsTime) {
  const Schedule schedule{compute(0), compute(1), {Action::drop, 0}, compute(0), compute(2)};
  EXPECT_EQ(replay(three(), schedule, {}).time, 13);
  EXPECT_EQ(replay(three(), schedule, {}).recompute, 4);
}

TEST(Replay, CopiesOverlapOperatorsAndReadersWait) {
  // a is ready at 4; out 4..14 beside b (4..7); released at 14; in 14..24; c 24..26.
  const HostLink link{.bytes_per_ns = 1};
  const Schedule schedule{compute(0),           {Action::copy_out, 0}, compute(1),
                          {Action::release, 0}, {Action::copy_in, 0},  compute(2)};
  const ReplayResult result = replay(three(), schedule, link);
  EXPECT_EQ(result.time, 26);
  EXPECT_EQ(result.stall, 17);
  EXPECT_EQ(result.host_peak, 10);
  EXPECT_EQ(result.copied, 20);
}

TEST(Replay, CopyTimesAreRoundedUp) {
  EXPECT_EQ((HostLink{.bytes_per_ns = 2, .latency = 3}.copy_time(5)), 6);
}

TEST(Replay, RefusesWhatCannotRun) {
  const Graph graph = three();
  EXPECT_THROW(replay(graph, {compute(0), compute(1)}, {}), std::logic_error);  // c never runs
  EXPECT_THROW(replay(graph, {compute(1)}, {}), std::logic_error);              // a is missing
  EXPECT_THROW(replay(graph, {compute(0), compute(1), compute(2), {Action::drop, 2}}, {}),
               std::logic_error);  // c is kept
  EXPECT_THROW(replay(graph, {compute(0), {Action::copy_in, 0}}, HostLink{.bytes_per_ns = 1}),
               std::logic_error);
}

TEST(LowerBoundOf, IsTheLargestWorkingSet) {
  // b: input 10, output 5, workspace 2; c: 10 + 5 + 1 is less.
  EXPECT_EQ(lower_bound(three()).bytes, 117);
  EXPECT_EQ(lower_bound(three()).op, 1);
}

TEST(LowerBoundOf, IsTheKeptTensorsWhereTheyAreMore) {
  const Graph graph("kept", {{.out_bytes = {4}}, {.out_bytes = {4}}, {.out_bytes = {4}}}, {0, 1, 2},
                    0);
  EXPECT_EQ(lower_bound(graph).bytes, 12);
  EXPECT_EQ(lower_bound(graph).op, -1);
}

TEST(BasePeak, OfAChainIsAllActivationsAndTwoGradients) {
  // 3 activations of 4; the loss adds a gradient of 2: 14, as in the first backward operator.
  EXPECT_EQ(base_peak(test::chain_graph(3, 4, 8, 4, 2)), 14);
}

}  // namespace
}  // namespace tessera::remat
