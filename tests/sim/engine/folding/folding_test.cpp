// Ranks that are not simulated have to do what those do who stand for them.
#include <algorithm>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "sim/engine/communication/communication_plan.h"
#include "sim/trace/timeline_index.h"
#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

constexpr FoldSettings kAll{};
constexpr FoldSettings kNone{.tensor = false, .data = false, .rails = false};
constexpr FoldSettings kTensor{.tensor = true, .data = false};
constexpr FoldSettings kData{.tensor = false, .data = true};

/// Nodes of `gpus` on a switch, one NIC of 25 GB/s for `gpus_per_nic` of them, behind `fabric`.
ClusterSpec cluster_of(int nodes, int gpus, int gpus_per_nic, const FabricSpec& fabric) {
  ClusterSpec cluster = switched_node(gpus);
  cluster.node_count = nodes;
  cluster.node.nic_count = std::max(1, gpus / gpus_per_nic);
  cluster.node.nic_bandwidth = 25_GBps;
  cluster.node.nic_latency = 1_us;
  cluster.fabric = fabric;
  return cluster;
}

/// A step of a pipeline as frameworks run it: micro-batches with tensor-parallel all-reduces,
/// messages between stages, gradients reduced in two buckets of which the first overlaps kernels.
TimedProgram step_of(const ParallelLayout& layout, const ClusterSpec& cluster, int micro_batches) {
  ProgramBuilder builder(layout);
  for (int stage = 0; stage < layout.pipeline; ++stage) {
    SegmentCosts costs;
    costs.host_time = 5_us;
    for (int i = 0; i < micro_batches; ++i) {
      std::int32_t ready = -1;
      if (stage > 0) ready = builder.recv(stage, stage - 1, i, Bytes(3'000'000));
      for (int half = 0; half < 2; ++half) {
        const std::int32_t computed = builder.kernels(stage, 90_us, {ready, -1}, costs);
        ready = builder.all_reduce(stage, GroupKind::tensor, Bytes(1'500'000),
                                   StreamKind::tensor_comm, {computed, -1});
      }
      if (stage + 1 < layout.pipeline) {
        builder.send(stage, stage + 1, i, Bytes(3'000'000), {ready, -1});
      }
    }
    const std::int32_t computed = builder.kernels(stage, 200_us, kNoWaits, costs);
    builder.all_reduce(stage, GroupKind::data, Bytes(20'000'000), StreamKind::data_comm,
                       {computed, -1});
    builder.kernels(stage, 300_us, kNoWaits, costs);
    builder.all_reduce(stage, GroupKind::data, Bytes(10'000'000), StreamKind::data_comm);
    builder.all_reduce(stage, GroupKind::pipeline, Bytes(4), StreamKind::data_comm);
  }
  TimedProgram timed = builder.on(cluster);
  timed.collectives.slows_kernels = true;
  return timed;
}

Timeline simulated(TimedProgram program, const FoldSettings& fold) {
  program.simulation.fold = fold;
  return simulate_forked(program);
}

/// Every rank of `whole` did what the one did that stands for it in `folded`, to `tolerance`.
void expect_equal(const Timeline& folded, const Timeline& whole, const TimedProgram& program,
                  double tolerance) {
  ASSERT_NEAR(folded.step_time.value() / whole.step_time.value(), 1, tolerance);
  const TimelineIndex index(program, folded);
  std::size_t next = 0;
  for (int rank = 0; rank < program.program.layout.world_size(); ++rank) {
    for (const OpRecord& record : index.records_of(rank)) {
      const OpRecord& own = whole.ops.at(next++);
      ASSERT_EQ(own.op, record.op);
      const double step = whole.step_time.value();
      ASSERT_NEAR(own.start.value(), record.start.value(), tolerance * step) << rank;
      ASSERT_NEAR(own.end.value(), record.end.value(), tolerance * step) << rank << " " << own.op;
    }
  }
  EXPECT_EQ(next, whole.ops.size());
}

int classes_of(const Timeline& timeline) {
  std::vector<int> ranks = timeline.folding.representative;
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return static_cast<int>(ranks.size());
}

FabricSpec plain() {
  return {};
}
FabricSpec clos(int nodes_per_leaf, int spines, double oversubscription) {
  FabricSpec fabric;
  fabric.kind = FabricKind::clos;
  fabric.nodes_per_leaf = nodes_per_leaf;
  fabric.spines = spines;
  fabric.leaf_oversubscription = oversubscription;
  fabric.link_latency = 1_us;
  return fabric;
}

TEST(Folding, AlignedReplicasAndTensorGroupsAreSimulatedOncePerStage) {
  const ParallelLayout layout{.tensor = 4, .pipeline = 2, .data = 4};
  const TimedProgram program = step_of(layout, cluster_of(4, 8, 1, plain()), 3);
  const Timeline folded = simulated(program, kAll);
  EXPECT_EQ(classes_of(folded), 2);
  EXPECT_TRUE(folded.folding.refused.empty());
  expect_equal(folded, simulated(program, kNone), program, 1e-9);
}

// 4 nodes on a leaf whose one uplink has a quarter of their rate: the messages of all replicas
// meet there, and whoever is simulated alone must be as slow as in the crowd.
TEST(Folding, FlowsOfRanksThatAreNotSimulatedStillSlowTheOthers) {
  const ParallelLayout layout{.tensor = 2, .pipeline = 2, .data = 16};
  const TimedProgram program = step_of(layout, cluster_of(8, 8, 1, clos(4, 1, 4)), 4);
  const Timeline whole = simulated(program, kNone);
  const Timeline folded = simulated(program, kAll);
  EXPECT_EQ(classes_of(folded), 2);
  expect_equal(folded, whole, program, 1e-9);
  const TimedProgram faster = step_of(layout, cluster_of(8, 8, 1, clos(4, 1, 1)), 4);
  EXPECT_GT(folded.step_time, simulated(faster, kAll).step_time * 1.05);
}

TEST(Folding, ReplicasThatLieDifferentlyOnTheFabricAreKeptApartWithTheReason) {
  // Six nodes, three for each stage, four on a leaf: messages of node 0 stay on its leaf, those of
  // nodes 1 and 2 cross the spine.
  const ParallelLayout layout{.tensor = 8, .pipeline = 2, .data = 3};
  const TimedProgram program = step_of(layout, cluster_of(6, 8, 1, clos(4, 1, 1)), 2);
  const Timeline folded = simulated(program, kAll);
  EXPECT_GT(classes_of(folded), 2);
  EXPECT_LT(classes_of(folded), 48);
  ASSERT_EQ(folded.folding.refused.size(), 1u);
  EXPECT_EQ(folded.folding.refused.front().fold, "data");
  EXPECT_NE(folded.folding.refused.front().reason.find("GPU 0 and GPU 8: "), std::string::npos)
      << folded.folding.refused.front().reason;
  expect_equal(folded, simulated(program, kNone), program, 1e-9);
}

TEST(Folding, EachFoldCanBeSwitchedOff) {
  const ParallelLayout layout{.tensor = 4, .pipeline = 2, .data = 4};
  const TimedProgram program = step_of(layout, cluster_of(4, 8, 1, plain()), 2);
  EXPECT_EQ(classes_of(simulated(program, kTensor)), 2 * 4);
  EXPECT_EQ(classes_of(simulated(program, kData)), 2 * 4);
  EXPECT_FALSE(simulated(program, kNone).folding.any());
}

TEST(Folding, ASlowLinkKeepsThoseApartWhoUseIt) {
  const ParallelLayout layout{.tensor = 4, .pipeline = 2, .data = 4};
  ClusterSpec cluster = cluster_of(4, 8, 1, plain());
  cluster.faults = {{.link = "node0/nic5->fabric", .bandwidth_share = 0.5}};
  const TimedProgram program = step_of(layout, cluster, 3);
  const Timeline folded = simulated(program, kAll);
  EXPECT_GT(classes_of(folded), 2);
  EXPECT_FALSE(folded.folding.refused.empty());
  expect_equal(folded, simulated(program, kNone), program, 1e-9);
}

TEST(Folding, GroupsOfExpertsThatSpanTensorGroupsOrPartsOfThemChangeNothing) {
  for (const auto& [expert, parts] :
       {std::pair{2, 1}, {4, 1}, {8, 1}, {16, 1}, {2, 2}, {8, 2}, {2, 8}}) {
    SCOPED_TRACE(expert);
    SCOPED_TRACE(parts);
    const ParallelLayout layout{
        .tensor = 4, .pipeline = 1, .data = 4, .expert = expert, .expert_tensor = parts};
    ProgramBuilder builder(layout);
    for (int layer = 0; layer < 3; ++layer) {
      const std::int32_t sent = builder.kernels(0, 70_us);
      const std::int32_t arrived =
          builder.collective(OpKind::all_to_all, 0, GroupKind::expert, Bytes(2'000'000),
                             StreamKind::expert_comm, {sent, -1});
      const std::int32_t gathered =
          builder.collective(OpKind::all_gather, 0, GroupKind::expert_tensor, Bytes(3'000'000),
                             StreamKind::expert_comm, {arrived, -1});
      const std::int32_t computed = builder.kernels(0, 90_us, {gathered, -1});
      builder.all_reduce(0, GroupKind::tensor, Bytes(1'500'000), StreamKind::tensor_comm,
                         {computed, -1});
    }
    builder.all_reduce(0, GroupKind::expert_data, Bytes(9'000'000), StreamKind::data_comm);
    const TimedProgram program = builder.on(cluster_of(4, 4, 1, clos(2, 1, 2)));
    const Timeline whole = simulated(program, kNone);
    expect_equal(simulated(program, kAll), whole, program, 1e-9);
    expect_equal(simulated(program, kTensor), whole, program, 1e-9);
  }
}

/// A layout and a cluster from a seed: up to 64 GPUs, groups that fit nodes and groups that
/// straddle them, plain switches and fat trees with one or several ways.
TimedProgram random_job(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t bound) { return static_cast<int>(random() % bound); };
  const ParallelLayout layout{
      .tensor = 1 << below(4), .pipeline = 1 + below(4), .data = 1 + below(5)};
  const int gpus = 4 << below(2);
  const int nodes = (layout.world_size() + gpus - 1) / gpus;
  const FabricSpec fabric =
      below(2) == 0 ? plain() : clos(1 + below(4), 1 + below(2), 1 + below(3));
  return step_of(layout, cluster_of(nodes, gpus, 1 << below(2), fabric), 1 + below(4));
}

TEST(Folding, ChangesNothingOn64RandomLayouts) {
  int simulated_ranks = 0;
  int ranks = 0;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TimedProgram program = random_job(seed);
    const Timeline whole = simulated(program, kNone);
    const Timeline folded = simulated(program, kAll);
    expect_equal(simulated(program, kTensor), whole, program, 1e-9);
    expect_equal(folded, whole, program, 1e-9);
    const int world_size = program.program.layout.world_size();
    ranks += world_size;
    simulated_ranks += folded.folding.any() ? classes_of(folded) : world_size;
  }
  EXPECT_LT(simulated_ranks, ranks / 2);
}

}  // namespace
}  // namespace tessera::test
