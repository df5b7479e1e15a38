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

/// b takes 1 ns where the host has launched it ahead, and 3 where it runs again.
TEST(Replay, ARunInProgramOrderMayHaveATimeOfItsOwn) {
  const Graph graph("three",
                    {{.name = "a", .time = 4, .out_bytes = {10}},
                     {.name = "b", .time = 3, .inputs = {0}, .out_bytes = {5}, .first_time = 1},
                     {.name = "c", .time = 2, .inputs = {0, 1}, .out_bytes = {1}}},
                    {2}, 100);
  EXPECT_EQ(graph.base_time(), 4 + 1 + 2);
  const ReplayResult result =
      replay(graph, {compute(0), compute(1), {Action::drop, 1}, compute(1), compute(2)}, {});
  EXPECT_EQ(result.time, 4 + 1 + 3 + 2);
  EXPECT_EQ(result.recompute, 3);
  EXPECT_FALSE(graph.same_problem(three()));
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

/// a (4 ns) -> b (10 ns) -> c (2 ns), which reads a as well. The last 6 ns of b move data over the
/// link of copies: half as fast beside them, which are half as fast too.
Graph with_a_shared_link(ByteCount bytes) {
  return Graph("shared link",
               {{.name = "a", .time = 4, .out_bytes = {bytes}},
                {.name = "b",
                 .time = 10,
                 .inputs = {0},
                 .out_bytes = {5},
                 .link = {.time = 6, .pace = 0.5, .pace_of_copies = 0.5}},
                {.name = "c", .time = 2, .inputs = {0, 1}, .out_bytes = {1}}},
               {2}, 100, 2);
}

TEST(Replay, OperatorsAndCopiesOnOneLinkHoldEachOtherUp) {
  // a goes out from 4 on, 10 ns alone. b moves from 8 on, when 6 of them are left: both take 12.
  // Out at 20, as b is over; back 20..30; c 30..32.
  const HostLink link{.bytes_per_ns = 1};
  const Schedule schedule{compute(0),           {Action::copy_out, 0}, compute(1),
                          {Action::release, 0}, {Action::copy_in, 0},  compute(2)};
  const ReplayResult result = replay(with_a_shared_link(10), schedule, link);
  EXPECT_EQ(result.time, 32);
  EXPECT_EQ(result.stall, 6 + 10);
  EXPECT_EQ(result.forward_stall, 6);  // the backward pass begins with c
  // 6 bytes: 2 ns are left, which take 4, in which b gets 2 of its 6 done: it ends at 8 + 4 + 4.
  // Back 16..22; c 22..24.
  EXPECT_EQ(replay(with_a_shared_link(6), schedule, link).time, 24);
  // 20 bytes: the 16 ns left lose 6 to b, which ends at 20. Out at 30, back at 50.
  EXPECT_EQ(replay(with_a_shared_link(20), schedule, link).time, 52);
}

TEST(Replay, WhatOthersHideHoldsNobodyUpUntilItOutlastsThem) {
  // a (4 ns) -> b, which moves data for 6 ns beside c (9 ns), so that 3 are left -> d reads a.
  const auto time_with = [](ByteCount bytes, Nanoseconds slack) {
    const LinkUse use{.time = 6, .slack = slack, .pace = 0.5, .pace_of_copies = 0.5};
    const Graph graph("hidden",
                      {{.name = "a", .time = 4, .out_bytes = {bytes}},
                       {.name = "b", .inputs = {0}, .out_bytes = {5}, .link = use},
                       {.name = "c", .time = 9, .inputs = {0, 1}, .out_bytes = {1}},
                       {.name = "d", .time = 1, .inputs = {2}, .out_bytes = {1}}},
                      {3}, 100, 3);
    const Schedule schedule{compute(0), {Action::copy_out, 0}, compute(1),
                            compute(2), {Action::release, 0},  compute(3)};
    return replay(graph, schedule, HostLink{.bytes_per_ns = 1}).time;
  };
  EXPECT_EQ(time_with(3, 3), 4 + 9 + 1);      // 3 bytes take 6 ns beside b, and b 6 + 3
  EXPECT_EQ(time_with(3, 1), 4 + 9 + 1 + 2);  // which is 2 more than c hides
  EXPECT_EQ(time_with(10, 3), 20 + 1);        // b takes 12; the copy 10 + 6, until 20
}

/// a (4 ns), which launches a transfer of 6 ns when it has ended -> b (3 ns) -> c (2 ns), which
/// reads a and awaits the transfer. Beside copies both are half as fast.
Graph with_a_transfer() {
  const LinkUse use{.time = 6, .pace = 0.5, .pace_of_copies = 0.5};
  return Graph("transfer",
               {{.name = "a", .time = 4, .out_bytes = {10}},
                {.name = "launch", .link = use, .transfer = {.time = 6}},
                {.name = "b", .time = 3, .inputs = {0}, .out_bytes = {5}},
                {.name = "await", .transfer = {.awaits = 1}},
                {.name = "c", .time = 2, .inputs = {0, 1}, .out_bytes = {1}}},
               {2}, 100, 3);
}

TEST(Replay, TransfersRunBesideOperatorsAndAreAwaited) {
  // 4..10, of which b hides 3; c 10..12.
  const Schedule schedule{compute(0), compute(1), compute(2), compute(3), compute(4)};
  const ReplayResult result = replay(with_a_transfer(), schedule, {});
  EXPECT_EQ(result.time, 12);
  EXPECT_EQ(result.awaited, 3);
  EXPECT_EQ(result.forward_awaited, 0);
  EXPECT_EQ(result.stall, 0);
  EXPECT_EQ(with_a_transfer().base_time(), 9);
  EXPECT_EQ(with_a_transfer().unplanned_time(), 12);
  // a again, 7..11: the transfer hides 3 of it.
  const Schedule again{compute(0), compute(1), compute(2), {Action::drop, 0},
                       compute(0), compute(3), compute(4)};
  EXPECT_EQ(replay(with_a_transfer(), again, {}).time, 13);
}

TEST(Replay, TransfersThatNobodyAwaitsEndWithTheStep) {
  const Graph graph("reduction",
                    {{.name = "a", .time = 4, .out_bytes = {1}},
                     {.name = "first", .transfer = {.time = 6}},
                     {.name = "second", .transfer = {.time = 5}}},
                    {0}, 0, 0);
  EXPECT_EQ(replay(graph, {compute(0), compute(1), compute(2)}, {}).time, 4 + 6 + 5);
  EXPECT_EQ(graph.unplanned_time(), 15);
}

TEST(Replay, TransfersAndCopiesHoldEachOtherUp) {
  const HostLink link{.bytes_per_ns = 1};
  // Ahead of it: the copy, 4..14 alone, outlasts the transfer, which takes twice as long, until 16.
  const Schedule ahead{compute(0), {Action::copy_out, 0}, compute(1), compute(2), compute(3),
                       compute(4)};
  EXPECT_EQ(replay(with_a_transfer(), ahead, link).time, 16 + 2);
  // From 7 on: the 3 ns that are left take 6, until 13, in which the copy does 3 of its 10.
  const Schedule behind{compute(0), compute(1), compute(2),          {Action::copy_out, 0},
                        compute(3), compute(4), {Action::release, 0}};
  const ReplayResult result = replay(with_a_transfer(), behind, link);
  EXPECT_EQ(result.awaited, 13 - 7);
  EXPECT_EQ(result.time, 13 + 7);
  EXPECT_EQ(result.stall, 20 - 15);
}

TEST(Replay, WithoutCopiesALinkIsSharedWithNobody) {
  const Schedule schedule{compute(0), compute(1), compute(2)};
  EXPECT_EQ(replay(with_a_shared_link(10), schedule, HostLink{.bytes_per_ns = 1}).time, 16);
  EXPECT_EQ(replay(with_a_shared_link(10), schedule, {}).time, 16);
  // Over when b begins to move.
  const Schedule copied{compute(0), {Action::copy_out, 0}, compute(1), compute(2)};
  EXPECT_EQ(replay(with_a_shared_link(4), copied, HostLink{.bytes_per_ns = 1}).time, 16);
}

TEST(GraphProblem, IsAnotherWhereTheLinkIsShared) {
  EXPECT_TRUE(with_a_shared_link(10).same_problem(with_a_shared_link(10)));
  EXPECT_TRUE(with_a_shared_link(10).uses_link());
  EXPECT_FALSE(three().uses_link());
  OpSpec op{.name = "a", .time = 4, .out_bytes = {10}};
  const Graph alone("a", {op}, {0}, 0);
  op.link = {.time = 4, .pace = 0.5, .pace_of_copies = 0.5};
  EXPECT_FALSE(Graph("a", {op}, {0}, 0).same_problem(alone));
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
