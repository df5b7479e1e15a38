// Every collective and message of a step takes the time that sim/collectives says of it.
#include <array>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "sim/collectives/collective.h"
#include "sim/collectives/rings/ring_shift.h"
#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

constexpr std::array kKinds = {OpKind::all_reduce, OpKind::reduce_scatter, OpKind::all_gather,
                               OpKind::broadcast,  OpKind::all_to_all,     OpKind::ring_shift};

/// Time of one collective over all GPUs of `cluster`. With `shared` links, a second stream of the
/// same ranks uses them afterwards, so that they carry flows instead of closed forms.
Seconds end_of(OpKind kind, const ClusterSpec& cluster, Bytes bytes, bool shared) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = cluster.gpu_count()});
  const auto first = builder.collective(kind, 0, GroupKind::data, bytes, StreamKind::data_comm);
  if (shared) {
    builder.collective(kind, 0, GroupKind::data, 1_B, StreamKind::tensor_comm, {first, -1});
  }
  return simulate_forked(builder.on(cluster)).ops[0].end;
}

CollectiveCost cost_of(OpKind kind, const ClusterSpec& cluster, Bytes bytes) {
  std::vector<int> ranks(static_cast<std::size_t>(cluster.gpu_count()));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (kind == OpKind::ring_shift)
    return ring_shift_cost(Topology(cluster), bytes, ranks, CollectiveTuning());
  return collective_cost(Topology(cluster), collective_kind_of(kind), bytes, ranks);
}

TEST(CollectivesOfAStep, TakeTheirTimeAloneWhetherTheyFlowOrNot) {
  std::mt19937_64 random(3);
  for (const OpKind kind : kKinds) {
    for (int round = 0; round < 4; ++round) {
      const ClusterSpec cluster = switched_node(2 + static_cast<int>(random() % 7));
      const Bytes bytes(1 + static_cast<std::int64_t>(random() % 1'000'000'000));
      const CollectiveCost cost = cost_of(kind, cluster, bytes);
      // Flows have whole bytes: half a byte at 100 GB/s is far below a nanosecond.
      EXPECT_NEAR(end_of(kind, cluster, bytes, false).value(), cost.solo_time.value(), 1e-12);
      EXPECT_NEAR(end_of(kind, cluster, bytes, true).value(), cost.solo_time.value(), 1e-9);
      EXPECT_GE(cost.solo_time, cost.lower_bound);
    }
  }
}

TEST(CollectivesOfAStep, AreNeverSlowerOverFasterLinks) {
  for (const OpKind kind : kKinds) {
    Seconds before(1e9);
    for (const double rate : {25.0, 50.0, 100.0, 200.0}) {
      const Seconds time = end_of(kind, switched_node(8, BytesPerSecond(rate * 1e9)), 64_MiB, true);
      EXPECT_LE(time, before);
      before = time;
    }
  }
}

/// Two kinds of one group keep their order: members match them by number, not by kind.
TEST(CollectivesOfAStep, OfOneGroupMatchInTheOrderOfTheProgram) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = 4});
  builder.collective(OpKind::all_gather, 0, GroupKind::data, 8_MiB, StreamKind::data_comm);
  builder.collective(OpKind::reduce_scatter, 0, GroupKind::data, 8_MiB, StreamKind::data_comm);
  const Timeline timeline = simulate_forked(builder.build());
  const Seconds gather = cost_of(OpKind::all_gather, switched_node(4), 8_MiB).solo_time;
  const Seconds scatter = cost_of(OpKind::reduce_scatter, switched_node(4), 8_MiB).solo_time;
  EXPECT_NEAR(timeline.ops[0].end.value(), gather.value(), 1e-12);
  EXPECT_NEAR(timeline.ops[1].end.value(), (gather + scatter).value(), 1e-12);
}

TEST(MessagesOfAStep, CostWhatNcclsSendAndReceiveCost) {
  for (const Bytes bytes : {1_KiB, 1_MiB, 256_MiB}) {
    ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
    builder.send(0, 1, 0, bytes);
    builder.recv(1, 0, 0, bytes);
    TimedProgram timed = builder.build();
    timed.collectives.nccl_messages = true;
    const std::array ranks = {0, 1};
    const CollectiveCost cost =
        collective_cost(timed.topology, CollectiveKind::send_recv, bytes, ranks);
    EXPECT_NEAR(simulate_forked(timed).step_time.value(), cost.solo_time.value(), 1e-9);
    EXPECT_GT(simulate_forked(timed).step_time, simulate_forked(builder.build()).step_time);
  }
}

}  // namespace
}  // namespace tessera::test
