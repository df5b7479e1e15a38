#include "sim/collectives/collective.h"

#include <numeric>

#include "sim/collectives/collective_tuning.h"
#include "sim/collectives/rings/ring_paths.h"
#include "tests/hw/boxes.h"

namespace tessera {
namespace {

constexpr auto kAllReduce = CollectiveKind::all_reduce;
constexpr CollectiveKind kAllKinds[] = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                        CollectiveKind::all_gather, CollectiveKind::broadcast};

/// Those and all-to-all, which runs no ring.
constexpr CollectiveKind kEveryKind[] = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                         CollectiveKind::all_gather, CollectiveKind::broadcast,
                                         CollectiveKind::all_to_all};

std::vector<int> first_gpus(int count) {
  std::vector<int> gpus(static_cast<std::size_t>(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

ClusterSpec several(const NodeSpec& node, int count) {
  ClusterSpec cluster = boxes::alone(node);
  cluster.node_count = count;
  return cluster;
}

double bus_bandwidth_in_gbps(const Topology& topology, const std::vector<int>& ranks) {
  return ring_paths(topology, ranks).shape.bus_bandwidth.value() / 1e9;
}

TEST(RingBandwidth, DirectMeshUsesEveryNvlinkOfTheGroup) {
  const Topology h100(boxes::alone(boxes::h100_mesh()));
  EXPECT_NEAR(bus_bandwidth_in_gbps(h100, first_gpus(4)), 18 * 20.6, 1e-9);
  EXPECT_NEAR(bus_bandwidth_in_gbps(h100, first_gpus(3)), 12 * 20.6, 1e-9);
  EXPECT_NEAR(bus_bandwidth_in_gbps(h100, {1, 3}), 6 * 20.6, 1e-9);
  const Topology a100(boxes::alone(boxes::a100_mesh()));
  EXPECT_NEAR(bus_bandwidth_in_gbps(a100, first_gpus(4)), 12 * 20, 1e-9);
}

TEST(RingBandwidth, RingsGoRoundAMissingBundle) {
  for (const bool one_way : {false, true}) {
    ClusterSpec cluster = boxes::alone(boxes::h100_mesh());
    cluster.faults = {{"node0/gpu0->gpu3", 0, one_way}};
    const Topology topology(cluster);
    // The only cycle that is left, 0-1-3-2, takes two of the six-lane bundles of every GPU.
    EXPECT_NEAR(bus_bandwidth_in_gbps(topology, first_gpus(4)), 12 * 20.6, 1e-9);
    EXPECT_EQ(ring_paths(topology, first_gpus(4)).shape.path, PathClass::nvlink);
  }
}

TEST(RingBandwidth, NvswitchNodeUsesTheGpusPort) {
  const Topology topology(boxes::alone(boxes::a100_switch()));
  for (const int count : {2, 3, 8}) {
    EXPECT_NEAR(bus_bandwidth_in_gbps(topology, first_gpus(count)), 12 * 20, 1e-9);
  }
}

TEST(RingBandwidth, CubeMeshUsesAllSixNvlinks) {
  const Topology topology(boxes::alone(boxes::v100_cube_mesh()));
  EXPECT_NEAR(bus_bandwidth_in_gbps(topology, first_gpus(8)), 6 * 20, 1e-9);
  // Quad 0-3: GPUs 0 and 1 have 4 links inside it.
  EXPECT_NEAR(bus_bandwidth_in_gbps(topology, first_gpus(4)), 4 * 20, 1e-9);
}

TEST(RingBandwidth, PairWithoutNvlinkRelaysThroughANeighbour) {
  const Topology topology(boxes::alone(boxes::v100_cube_mesh()));
  const RingPaths paths = ring_paths(topology, std::vector{0, 5});
  EXPECT_EQ(paths.shape.path, PathClass::relay);
  EXPECT_NEAR(paths.shape.bus_bandwidth.value(), 20e9, 1);  // 0-1-5, one link on 0-1
}

TEST(RingBandwidth, PcieRingIsLimitedByTheSocketLink) {
  const Topology topology(boxes::alone(boxes::pcie_box()));
  EXPECT_NEAR(bus_bandwidth_in_gbps(topology, first_gpus(4)), 16, 1e-9);
  EXPECT_NEAR(bus_bandwidth_in_gbps(topology, {0, 1}), 32, 1e-9);  // below one switch
  EXPECT_EQ(ring_paths(topology, first_gpus(4)).shape.path, PathClass::pcie);
}

TEST(RingBandwidth, NicsOfANodeShareTheRing) {
  const Topology topology(several(boxes::a100_switch(), 2));
  // 8 NICs of 25 GB/s carry 200; the ports could carry 240.
  EXPECT_NEAR(bus_bandwidth_in_gbps(topology, first_gpus(16)), 8 * 25, 1e-9);
  // One GPU per node: its own NIC only.
  EXPECT_NEAR(bus_bandwidth_in_gbps(topology, {3, 11}), 25, 1e-9);
  // Two GPUs per node: two NICs.
  EXPECT_NEAR(bus_bandwidth_in_gbps(topology, {0, 1, 8, 9}), 2 * 25, 1e-9);
}

TEST(RingBandwidth, PcieNodesAreCrossedOnceByTheRingBetweenNodes) {
  NodeSpec node = boxes::pcie_box();
  node.sockets = 1;
  node.nic_count = 1;
  node.nic_bandwidth = 100_GBps;
  const Topology topology(several(node, 2));
  // Every PCIe link is crossed once per direction: 32 GB/s. The chain ends on the second switch,
  // and its way to the NIC returns over the uplinks, which the chain uses in the other direction.
  EXPECT_NEAR(bus_bandwidth_in_gbps(topology, first_gpus(8)), 32, 1e-9);
}

TEST(CollectiveCost, RingAllReduceTakesAlphaPlusTwoNMinusOneOverN) {
  const Topology topology(boxes::alone(boxes::h100_mesh()));
  const double bytes = 1 << 30;
  const CollectiveCost cost =
      collective_cost(topology, CollectiveCall{.kind = kAllReduce, .bytes = 1_GiB}, first_gpus(4),
                      CollectiveTuning(nccl_constants()));
  EXPECT_EQ(cost.protocol, CollectiveProtocol::simple);
  // base 8.4 us + 6 steps of 3.4 us
  EXPECT_NEAR(cost.latency.value(), 28.8e-6, 1e-12);
  EXPECT_NEAR(cost.solo_time.value(), 28.8e-6 + 1.5 * bytes / 370.8e9, 1e-9);
  EXPECT_NEAR(cost.lower_bound.value(), 1.5 * bytes / 370.8e9, 1e-9);
}

TEST(CollectiveCost, TimeAloneIsLatencyPlusBytesOverTheSlowestLink) {
  for (const ClusterSpec& cluster :
       {boxes::alone(boxes::h100_mesh()), boxes::alone(boxes::v100_cube_mesh()),
        boxes::alone(boxes::pcie_box()), several(boxes::a100_switch(), 2)}) {
    const Topology topology(cluster);
    for (const CollectiveKind kind : kAllKinds) {
      const CollectiveCost cost =
          collective_cost(topology, kind, 64_MiB, first_gpus(topology.gpu_count()));
      double slowest = topology.link(cost.links.front()).bandwidth.value();
      for (const LinkId id : cost.links) {
        slowest = std::min(slowest, topology.link(id).bandwidth.value());
      }
      const double expected = cost.latency.value() + cost.bytes_per_link / slowest;
      EXPECT_NEAR(cost.solo_time.value() / expected, 1, 1e-12);
    }
  }
}

/// Bytes over all links of a mesh or of the sending ports of a switch.
double bytes_sent(const Topology& topology, CollectiveKind kind, int ranks) {
  const CollectiveCost cost = collective_cost(topology, kind, 1_GiB, first_gpus(ranks));
  const auto links = static_cast<double>(cost.links.size());
  const bool over_switch = topology.cluster().node.interconnect == GpuInterconnect::nvswitch;
  return cost.bytes_per_link * cost.protocol_share * (over_switch ? links / 2 : links);
}

TEST(CollectiveCost, BytesOverAllLinksEqualTheRingFormula) {
  const double bytes = 1 << 30;
  const Topology mesh(boxes::alone(boxes::a100_mesh()));
  const Topology nvswitch(boxes::alone(boxes::a100_switch()));
  for (const int n : {2, 3, 4}) {
    EXPECT_NEAR(bytes_sent(mesh, kAllReduce, n), 2 * (n - 1) * bytes, 1) << n;
    EXPECT_NEAR(bytes_sent(mesh, CollectiveKind::all_gather, n), (n - 1) * bytes, 1) << n;
    EXPECT_NEAR(bytes_sent(nvswitch, kAllReduce, 2 * n), 2 * (2 * n - 1) * bytes, 2) << n;
  }
}

TEST(CollectiveCost, CubeMeshCountsADoubleBundleAsTwoLanes) {
  const Topology topology(boxes::alone(boxes::v100_cube_mesh()));
  const RingPaths paths = ring_paths(topology, first_gpus(8));
  double total = 0;
  for (const LinkShare& link : paths.links) {
    EXPECT_NEAR(link.share, topology.link(link.link).lanes / 6.0, 1e-12);
    total += link.share;
  }
  EXPECT_NEAR(total, 8, 1e-12);  // every GPU sends the ring's traffic once
}

TEST(CollectiveCost, OneRankOrNothingToSendIsFree) {
  const Topology topology(boxes::alone(boxes::h100_mesh()));
  for (const CollectiveKind kind : kAllKinds) {
    EXPECT_EQ(collective_cost(topology, kind, 1_GiB, first_gpus(0)).solo_time, 0_s);
    EXPECT_EQ(collective_cost(topology, kind, 1_GiB, first_gpus(1)).solo_time, 0_s);
    EXPECT_EQ(collective_cost(topology, kind, 0_B, first_gpus(4)).solo_time, 0_s);
    EXPECT_TRUE(collective_cost(topology, kind, 1_GiB, first_gpus(1)).links.empty());
  }
}

TEST(CollectiveCost, SubsetGroupsOccupyOnlyTheirOwnLinks) {
  const Topology topology(boxes::alone(boxes::h100_mesh()));
  const CollectiveCost cost = collective_cost(topology, kAllReduce, 1_MiB, std::vector{3, 1});
  EXPECT_THAT(cost.links, testing::UnorderedElementsAre(topology.nvlink_bundle(1, 3),
                                                        topology.nvlink_bundle(3, 1)));
}

TEST(CollectiveCost, OrderOfRanksDoesNotMatter) {
  const Topology topology(boxes::alone(boxes::v100_cube_mesh()));
  const auto a = collective_cost(topology, kAllReduce, 1_MiB, std::vector{0, 1, 2, 3});
  const auto b = collective_cost(topology, kAllReduce, 1_MiB, std::vector{2, 0, 3, 1});
  EXPECT_EQ(a.solo_time, b.solo_time);
  EXPECT_EQ(a.links, b.links);
}

TEST(CollectiveCost, MoreBytesNeverTakeLess) {
  for (const ClusterSpec& cluster :
       {boxes::alone(boxes::h100_mesh()), boxes::alone(boxes::pcie_box()),
        several(boxes::a100_switch(), 4)}) {
    const Topology topology(cluster);
    const std::vector<int> ranks = first_gpus(topology.gpu_count());
    for (const CollectiveKind kind : kEveryKind) {
      Seconds before;
      for (std::int64_t bytes = 1; bytes < (1LL << 34); bytes += 1 + bytes / 3) {
        const Seconds time = collective_cost(topology, kind, Bytes(bytes), ranks).solo_time;
        ASSERT_GE(time, before) << bytes;
        before = time;
      }
    }
  }
}

TEST(CollectiveCost, AllToAllLeavesLlAt512KiBForAPeerOn32Channels) {
  const Topology topology(boxes::alone(boxes::a100_switch()));
  const std::vector<int> ranks = first_gpus(8);
  const auto time = [&](Bytes bytes, std::optional<CollectiveProtocol> protocol) {
    const CollectiveCall call{
        .kind = CollectiveKind::all_to_all, .bytes = bytes, .protocol = protocol};
    return collective_cost(topology, call, ranks).solo_time;
  };
  const Seconds largest = time(4_MiB, CollectiveProtocol::ll);
  ASSERT_GT(largest, time(4_MiB, CollectiveProtocol::simple)) << "the choice would be another";
  EXPECT_EQ(time(4_MiB, std::nullopt), largest);
  EXPECT_NEAR(time(4_MiB + 8_KiB, std::nullopt) / largest, 1, 1e-9) << "no less for more bytes";
  EXPECT_EQ(time(16_MiB, std::nullopt), time(16_MiB, CollectiveProtocol::simple));
}

TEST(CollectiveCost, MoreBandwidthIsNeverSlower) {
  for (std::int64_t bytes = 256; bytes < (1LL << 32); bytes *= 4) {
    Seconds before(1e9);
    for (const double efficiency : {0.3, 0.5, 0.7, 0.9, 1.0}) {
      NodeSpec node = boxes::a100_switch();
      node.nvlink_efficiency = efficiency;
      const Topology topology(several(node, 2));
      const Seconds time =
          collective_cost(topology, kAllReduce, Bytes(bytes), first_gpus(16)).solo_time;
      ASSERT_LE(time, before) << bytes;
      before = time;
    }
  }
}

TEST(CollectiveCost, GatherAndScatterMoveHalfOfAnAllReduce) {
  const Topology topology(boxes::alone(boxes::a100_switch()));
  const auto bytes = [&](CollectiveKind kind) {
    const CollectiveCall call{.kind = kind,
                              .bytes = 1_GiB,
                              .algorithm = CollectiveAlgorithm::ring,
                              .protocol = CollectiveProtocol::simple};
    return collective_cost(topology, call, first_gpus(8), CollectiveTuning(nccl_constants()))
        .bytes_per_link;
  };
  EXPECT_NEAR(bytes(CollectiveKind::all_gather), bytes(kAllReduce) / 2, 1);
  EXPECT_NEAR(bytes(CollectiveKind::reduce_scatter), bytes(kAllReduce) / 2, 1);
  EXPECT_NEAR(bytes(CollectiveKind::broadcast), 1 << 30, 1);
}

TEST(CollectiveCost, ARingTakesItsLatencyForEachNode) {
  const auto gather = [](int nodes, Seconds ring_latency, CollectiveKind kind) {
    ClusterSpec cluster = several(boxes::a100_switch(), nodes);
    cluster.node.nic_ring_latency = ring_latency;
    return collective_cost(Topology(cluster), kind, 1_MiB, first_gpus(cluster.gpu_count())).latency;
  };
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    const Seconds more = gather(8, 1000_us, kind) - gather(8, 400_us, kind);
    EXPECT_NEAR(more.value(), 8 * 600e-6, 1e-9);
    EXPECT_EQ(gather(8, 1_us, kind), gather(8, 0_us, kind));  // less than NCCL's tuner counts
    EXPECT_EQ(gather(1, 1000_us, kind), gather(1, 0_us, kind));
  }
}

TEST(CopyEngines, TakeNoMultiprocessorsForTheSameTime) {
  const Topology node(boxes::alone(boxes::a100_switch()));
  for (const CollectiveKind kind : kEveryKind) {
    const CollectiveCall kernel{.kind = kind, .bytes = 64_MiB};
    CollectiveCall copies = kernel;
    copies.copy_engines = true;
    const CollectiveCost by_kernel = collective_cost(node, kernel, first_gpus(8));
    const CollectiveCost by_copies = collective_cost(node, copies, first_gpus(8));
    const bool reduces =
        kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter;
    EXPECT_GT(by_kernel.gpu.multiprocessors, 0);
    EXPECT_EQ(by_copies.gpu.multiprocessors, reduces ? by_kernel.gpu.multiprocessors : 0);
    EXPECT_EQ(by_copies.solo_time, by_kernel.solo_time);
    EXPECT_LE(by_copies.gpu.memory_bytes, by_kernel.gpu.memory_bytes);
  }
}

TEST(CopyEngines, DoNotReachOtherNodes) {
  const Topology nodes(several(boxes::a100_switch(), 2));
  const CollectiveCall copies{
      .kind = CollectiveKind::all_gather, .bytes = 64_MiB, .copy_engines = true};
  EXPECT_GT(collective_cost(nodes, copies, first_gpus(16)).gpu.multiprocessors, 0);
}

}  // namespace
}  // namespace tessera
