#include "sim/engine/neighbours.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/engine/engine.h"
#include "sim/process/answer.h"
#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NeighbourStep, begin, end)
}  // namespace tessera

namespace tessera::test {
namespace {

using Steps = std::vector<std::vector<NeighbourStep>>;

constexpr Bytes kMessage = Bytes(100'000'000);  // 10 ms at 10 GB/s

/// Four nodes of one GPU behind NICs of 10 GB/s, two on each leaf; a leaf has one uplink, which is
/// as fast as one NIC.
ClusterSpec two_leaves() {
  ClusterSpec cluster = switched_node(1);
  cluster.node.interconnect = GpuInterconnect::none;
  cluster.node.nic_count = 1;
  cluster.node.nic_bandwidth = 10_GBps;
  cluster.node_count = 4;
  cluster.fabric.kind = FabricKind::clos;
  cluster.fabric.nodes_per_leaf = 2;
  cluster.fabric.spines = 1;
  cluster.fabric.leaf_oversubscription = 2;
  return cluster;
}

/// Computes for `work`, then sends a message from its first to its second node.
TimedProgram sender(int first_node, int second_node, Seconds work) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  const std::int32_t computed = builder.kernels(0, work);
  builder.send(0, 1, 7, kMessage, {computed, -1});
  builder.recv(1, 0, 7, kMessage);
  TimedProgram timed = builder.on(two_leaves());
  timed.program.placement = {first_node, second_node};
  return timed;
}

Steps steps_of(const std::vector<NeighbourJob>& jobs, int steps) {
  return forked([&] { return simulate_together(jobs, steps).steps; });
}

TEST(Neighbours, JobsThatShareNoLinkTakeExactlyTheirTimesAlone) {
  const TimedProgram one = sender(0, 1, 1_ms);  // both stay below their leaf
  const TimedProgram other = sender(2, 3, 3_ms);
  const Steps steps = steps_of({{&one, Seconds(0)}, {&other, Seconds(0)}}, 1);
  EXPECT_EQ(steps[0].front().time(), simulate_forked(one).step_time);
  EXPECT_EQ(steps[1].front().time(), simulate_forked(other).step_time);
}

TEST(Neighbours, JobsThatFoldKeepTheirTimesToo) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = 2});
  builder.kernels(0, 1_ms);
  builder.all_reduce(0, GroupKind::data, 64_MiB, StreamKind::compute);
  TimedProgram one = builder.on(two_leaves());
  one.simulation.fold = {};
  TimedProgram other = one;
  one.program.placement = {0, 1};
  other.program.placement = {2, 3};
  const Steps steps = steps_of({{&one, Seconds(0)}, {&other, Seconds(0)}}, 1);
  EXPECT_EQ(steps[0].front().time(), simulate_forked(one).step_time);
  EXPECT_EQ(steps[1].front().time(), simulate_forked(other).step_time);
}

TEST(Neighbours, TwoMessagesOverOneUplinkTakeTwiceAsLong) {
  const TimedProgram one = sender(0, 2, 1_ms);
  const TimedProgram other = sender(1, 3, 1_ms);
  const Seconds alone = simulate_forked(one).step_time;
  EXPECT_GE(alone.value(), 11e-3 - 1e-9);  // 1 ms and 10 ms
  const Steps steps = steps_of({{&one, Seconds(0)}, {&other, Seconds(0)}}, 1);
  EXPECT_NEAR((steps[0].front().time() - alone).value(), 10e-3, 1e-8);
  EXPECT_NEAR((steps[1].front().time() - alone).value(), 10e-3, 1e-8);
}

TEST(Neighbours, AJobThatStartsLaterLeavesTheFirstStepAlone) {
  const TimedProgram one = sender(0, 2, 1_ms);
  const TimedProgram other = sender(1, 3, 1_ms);
  const Seconds alone = simulate_forked(one).step_time;
  const Steps steps = steps_of({{&one, Seconds(0)}, {&other, Seconds(20e-3)}}, 1);
  EXPECT_EQ(steps[0].front().time(), alone);
  EXPECT_EQ(steps[1].front().begin, Seconds(20e-3));
  EXPECT_GT(steps[1].front().time(), alone);  // the first one goes on with its next steps
}

TEST(Neighbours, AFastJobGoesOnUntilTheSlowOneHasItsSteps) {
  const TimedProgram fast = sender(0, 1, 1_ms);
  const TimedProgram slow = sender(2, 3, 100_ms);
  const Steps steps = steps_of({{&fast, Seconds(0)}, {&slow, Seconds(0)}}, 2);
  EXPECT_EQ(steps[1].size(), 2u);
  // 2 x 110 ms hold 20 steps of 11 ms, less what latencies add
  EXPECT_GE(steps[0].size(), 19u);
  for (std::size_t i = 1; i < steps[0].size(); ++i) {
    EXPECT_EQ(steps[0][i].begin, steps[0][i - 1].end);
    EXPECT_NEAR(steps[0][i].time().value(), steps[0][0].time().value(), 1e-12);
  }
}

TEST(Neighbours, ContendedLinksSayWhoSentWhatAndForHowLongTogether) {
  const TimedProgram one = sender(0, 2, 1_ms);
  const TimedProgram other = sender(1, 3, 6_ms);
  using Figures = std::vector<double>;
  const Figures figures = forked([&] {
    const NeighbourRun run =
        simulate_together(std::vector<NeighbourJob>{{&one, Seconds(0)}, {&other, Seconds(0)}}, 1);
    Figures figures = {static_cast<double>(run.links.size())};
    for (const ContendedLink& link : run.links) {
      figures.insert(figures.end(), {link.bytes[0], link.bytes[1], link.together.value()});
    }
    return figures;
  });
  // Up from the first leaf and down to the second. One sends alone for 5 ms (half of its message),
  // both share for 10 ms, then the other has 5 ms of its own.
  ASSERT_EQ(figures[0], 2);
  for (std::size_t link = 0; link < 2; ++link) {
    EXPECT_GE(figures[1 + 3 * link], 1e8);
    EXPECT_EQ(figures[2 + 3 * link], 1e8);
    EXPECT_GE(figures[3 + 3 * link], 10e-3 - 1e-6);
  }
}

}  // namespace
}  // namespace tessera::test
