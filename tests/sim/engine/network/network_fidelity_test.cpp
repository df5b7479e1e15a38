#include <algorithm>

#include <gtest/gtest.h>

#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

constexpr auto kFlow = NetworkFidelity::flow;
constexpr auto kAnalytic = NetworkFidelity::analytic;
constexpr auto kChunk = NetworkFidelity::chunk;

/// Two nodes of `gpus` on a switch with a NIC per GPU.
ClusterSpec two_nodes(int gpus) {
  ClusterSpec cluster = switched_node(gpus);
  cluster.node_count = 2;
  cluster.node.nic_count = gpus;
  cluster.node.nic_bandwidth = 25_GBps;
  cluster.node.nic_latency = 1_us;
  return cluster;
}

void force_ring(TimedProgram& timed) {
  timed.collectives.overrides = {{.group = GroupKind::data,
                                  .algorithm = AlgorithmChoice::ring,
                                  .protocol = ProtocolChoice::simple}};
}

Seconds step_time(TimedProgram timed, NetworkFidelity fidelity) {
  timed.collectives.fidelity = fidelity;
  force_ring(timed);
  return simulate_forked(timed).step_time;
}

/// One all-reduce over all GPUs, alone. A second stream that uses the links at another time keeps
/// the closed form away.
TimedProgram lone_all_reduce(const ClusterSpec& cluster, Bytes bytes, bool private_links) {
  const int gpus = cluster.gpu_count();
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = gpus});
  const auto first = builder.all_reduce(0, GroupKind::data, bytes, StreamKind::data_comm);
  if (!private_links)
    builder.all_reduce(0, GroupKind::data, 1_B, StreamKind::tensor_comm, {first, -1});
  return builder.on(cluster);
}

Seconds second_all_reduce(const ClusterSpec& cluster) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = cluster.gpu_count()});
  builder.all_reduce(0, GroupKind::data, 1_B, StreamKind::tensor_comm);
  return step_time(builder.on(cluster), kAnalytic);
}

TEST(NetworkFidelity, AloneAFlowTakesItsClosedForm) {
  for (const ClusterSpec& cluster : {switched_node(4), switched_node(8), two_nodes(4)}) {
    const Seconds after = second_all_reduce(cluster);
    for (const Bytes bytes : {1_KiB, 1_MiB, 1_GiB}) {
      const Seconds closed = step_time(lone_all_reduce(cluster, bytes, true), kFlow);
      const Seconds flow = step_time(lone_all_reduce(cluster, bytes, false), kFlow) - after;
      const Seconds analytic = step_time(lone_all_reduce(cluster, bytes, true), kAnalytic);
      // A flow has whole bytes, which moves its end by less than a nanosecond here.
      EXPECT_NEAR(flow.value(), closed.value(), 1e-9) << bytes.value();
      EXPECT_NEAR(analytic.value(), closed.value(), 1e-12) << bytes.value();
    }
  }
}

struct Algorithms {
  OpKind kind = OpKind::all_reduce;
  AlgorithmChoice choice = AlgorithmChoice::ring;
};

/// Of one collective over all GPUs, alone.
Seconds time_of(const ClusterSpec& cluster, const Algorithms& run, Bytes bytes,
                NetworkFidelity fidelity) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = cluster.gpu_count()});
  builder.collective(run.kind, 0, GroupKind::data, bytes, StreamKind::data_comm, kNoWaits);
  TimedProgram timed = builder.on(cluster);
  timed.collectives.fidelity = fidelity;
  timed.collectives.overrides = {
      {.group = GroupKind::data, .algorithm = run.choice, .protocol = ProtocolChoice::simple}};
  return simulate_forked(timed).step_time;
}

void expect_chunks_within_three_percent(const ClusterSpec& cluster, const Algorithms& run,
                                        Bytes largest = 1_GiB) {
  for (const Bytes bytes : {1_MiB, largest}) {
    const Seconds closed = time_of(cluster, run, bytes, kAnalytic);
    EXPECT_NEAR(time_of(cluster, run, bytes, kFlow) / closed, 1, 1e-6);
    EXPECT_NEAR(time_of(cluster, run, bytes, kChunk) / closed, 1, 0.03)
        << cluster.gpu_count() << " GPUs on " << cluster.node_count << " nodes, "
        << static_cast<int>(run.kind) << " " << static_cast<int>(run.choice) << ", "
        << bytes.value() << " bytes";
  }
}

TEST(NetworkFidelity, AloneChunksTakeWithinThreePercentOfTheClosedForm) {
  for (const ClusterSpec& cluster :
       {switched_node(2), switched_node(8), two_nodes(4), switched_node(64)}) {
    for (const OpKind kind : {OpKind::all_reduce, OpKind::reduce_scatter, OpKind::all_gather}) {
      expect_chunks_within_three_percent(cluster, {kind, AlgorithmChoice::ring});
    }
  }
}

TEST(NetworkFidelity, ChunksOfPipelinesTakeWithinThreePercentOfTheClosedForm) {
  for (const ClusterSpec& cluster : {switched_node(2), switched_node(8), two_nodes(4)}) {
    for (const Algorithms& run : {Algorithms{OpKind::broadcast, AlgorithmChoice::ring},
                                  Algorithms{OpKind::all_reduce, AlgorithmChoice::tree}}) {
      expect_chunks_within_three_percent(cluster, run, 64_MiB);
    }
  }
}

TEST(NetworkFidelity, ChunksOfPairsTakeWithinThreePercentOfTheClosedForm) {
  for (const ClusterSpec& cluster : {switched_node(2), two_nodes(4), switched_node(16)}) {
    expect_chunks_within_three_percent(cluster, {OpKind::all_to_all, AlgorithmChoice::pairwise});
  }
}

/// Two all-reduces over the same links at once, on two streams.
TimedProgram two_at_once(Bytes bytes) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = 4});
  builder.all_reduce(0, GroupKind::data, bytes, StreamKind::data_comm);
  builder.all_reduce(0, GroupKind::data, bytes, StreamKind::tensor_comm);
  return builder.build();
}

TEST(NetworkFidelity, TwoAtOnceTakeTwiceAsLongExceptAnalytically) {
  const Bytes bytes = 1_GiB;
  ProgramBuilder one({.tensor = 1, .pipeline = 1, .data = 4});
  one.all_reduce(0, GroupKind::data, bytes, StreamKind::data_comm);
  const Seconds alone = step_time(one.build(), kAnalytic);
  EXPECT_NEAR(step_time(two_at_once(bytes), kAnalytic) / alone, 1, 1e-9);
  EXPECT_NEAR(step_time(two_at_once(bytes), kFlow) / alone, 2, 0.01);
  EXPECT_NEAR(step_time(two_at_once(bytes), kChunk) / alone, 2, 0.03);
}

TEST(NetworkFidelity, AnOverrideChangesTheAlgorithm) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = 8});
  builder.all_reduce(0, GroupKind::data, 256_MiB, StreamKind::data_comm);
  TimedProgram timed = builder.build();
  const Seconds tuned = simulate_forked(timed).step_time;
  timed.collectives.overrides = {{.group = GroupKind::data, .algorithm = AlgorithmChoice::tree}};
  // On one node a tree sends the buffer up and down every link, a ring 2 * 7/8 of it.
  EXPECT_GT(simulate_forked(timed).step_time, tuned);
}

}  // namespace
}  // namespace tessera::test
