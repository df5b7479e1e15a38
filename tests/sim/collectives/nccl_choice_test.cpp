#include "sim/collectives/nccl_choice.h"

#include <numeric>

#include "hw/units/input_error.h"
#include "sim/collectives/collective_names.h"
#include "sim/collectives/collective_plan.h"
#include "sim/collectives/rings/ring_paths.h"
#include "tests/hw/boxes.h"

namespace tessera {
namespace {

using Algorithm = CollectiveAlgorithm;
using Kind = CollectiveKind;
using Protocol = CollectiveProtocol;

std::vector<int> first_gpus(int count) {
  std::vector<int> gpus(static_cast<std::size_t>(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

ClusterSpec h100_nodes(int count, double nic_gigabytes = 50) {
  NodeSpec node = boxes::node("DGX-H100", boxes::gpu("H100", Architecture::hopper, "9.0", 18), 8);
  node.interconnect = GpuInterconnect::nvswitch;
  node.nvlink_efficiency = boxes::kHopperEfficiency;
  node.nic_count = 8;
  node.nic_bandwidth = BytesPerSecond(nic_gigabytes * 1e9);
  node.nic_latency = 0.6_us;
  ClusterSpec cluster = boxes::alone(node);
  cluster.node_count = count;
  return cluster;
}

RingShape shape_of(const ClusterSpec& cluster, int gpus) {
  return ring_paths(Topology(cluster), first_gpus(gpus)).shape;
}

NcclExpectation choice_of(const ClusterSpec& cluster, int gpus, Kind kind, Bytes bytes) {
  return nccl_choice(shape_of(cluster, gpus), {.kind = kind, .bytes = bytes});
}

TEST(NcclChoice, SearchRoundsBandwidthToItsSpeeds) {
  // 18 links of 20.6 GB/s: six channels of 60, or nine of 40
  EXPECT_NEAR(searched_bandwidth(370.8_GBps, Architecture::hopper).value(), 360e9, 1);
  EXPECT_NEAR(searched_bandwidth(240_GBps, Architecture::ampere).value(), 240e9, 1);
}

TEST(NcclChoice, NvlsOfEightHoppersReaches272) {
  // 8 heads * 40 * 0.85 * 7/8 * 2 = 476 on the bus, times 8/14
  const RingShape shape = shape_of(h100_nodes(1), 8);
  EXPECT_NEAR(nvls_bandwidth(shape).value(), 272e9, 1e6);
}

TEST(NcclChoice, NvlsTreeOfTwoNodesReaches246) {
  // 8 * 57.7 on the bus, times 16/30
  const RingShape shape = shape_of(h100_nodes(2), 16);
  EXPECT_NEAR(nvls_tree_bandwidth(shape).value(), 8 * 57.7e9 * 16 / 30, 1e6);
}

TEST(NcclChoice, LargeAllReducesOfEightHoppersTakeNvlsAndSmallOnesARing) {
  EXPECT_EQ(choice_of(h100_nodes(1), 8, Kind::all_reduce, 1_GiB).algorithm, Algorithm::nvls);
  EXPECT_EQ(choice_of(h100_nodes(1), 8, Kind::all_reduce, 256_KiB).algorithm, Algorithm::ring);
  // Four of the eight: the rings are faster.
  EXPECT_EQ(choice_of(h100_nodes(1), 4, Kind::all_reduce, 1_GiB).algorithm, Algorithm::ring);
}

TEST(NcclChoice, WhatNvlsCannotReduceTakesARing) {
  const RingShape shape = shape_of(h100_nodes(1), 8);
  const CollectiveCall call{.kind = Kind::all_reduce, .bytes = 1_GiB, .reduces_in_switch = false};
  EXPECT_EQ(nccl_choice(shape, call).algorithm, Algorithm::ring);
}

TEST(NcclChoice, TwoNodesBehindASlowNetworkTakeATree) {
  // A ring crosses the network twice, a tree of two nodes once.
  NodeSpec node = boxes::a100_switch();
  node.nic_count = 4;
  node.nic_bandwidth = 12.5_GBps;
  ClusterSpec cluster = boxes::alone(node);
  cluster.node_count = 2;
  EXPECT_EQ(choice_of(cluster, 16, Kind::all_reduce, 1_GiB).algorithm, Algorithm::tree);
}

TEST(NcclChoice, TheTunerOfNccl28TakesTwoNodesForOneAndRunsLargeAllReducesAsRings) {
  NodeSpec node = boxes::a100_switch();
  node.nic_count = 4;
  node.nic_bandwidth = 12.5_GBps;
  ClusterSpec cluster = boxes::alone(node);
  cluster.node_count = 2;
  const RingShape shape = shape_of(cluster, 16);
  CollectiveCall call{.kind = Kind::all_reduce, .bytes = 1_GiB, .tuner = NcclTuner::v2_8};
  // A ring of 235 GB/s, each byte 30 / 16 times; a tree of 110 GB/s, each byte twice.
  const NcclExpectation large = nccl_choice(shape, call);
  EXPECT_EQ(large.algorithm, Algorithm::ring);
  EXPECT_NEAR(large.transfer.value(), 1.074e9 * 30 / 16 / 235e9, 1e-5);
  for (const NcclExpectation& other : nccl_candidates(shape, call))
    EXPECT_EQ(other.algorithm, Algorithm::ring);
  call.bytes = 64_KiB;  // latency decides: 28 hops inside the nodes for 14
  EXPECT_EQ(nccl_choice(shape, call).algorithm, Algorithm::tree);
}

TEST(NcclChoice, GathersOverManySingleGpuNodesTakePatWhereSmall) {
  std::vector<int> ranks;
  for (int node = 0; node < 16; ++node) ranks.push_back(8 * node);
  const RingShape shape = ring_paths(Topology(h100_nodes(16)), ranks).shape;
  const auto algorithm = [&](Bytes bytes) {
    return nccl_choice(shape, {.kind = Kind::all_gather, .bytes = bytes}).algorithm;
  };
  EXPECT_EQ(algorithm(1_GiB), Algorithm::ring);
  // ring LL: 6.6 + 15 * (5 + 0.6) us; PAT: 8 + 4 * 14 / 3.5 + 2.8 * 16 us
  EXPECT_EQ(algorithm(64_KiB), Algorithm::pat);
}

TEST(NcclChoice, TheUserMayName) {
  const RingShape shape = shape_of(h100_nodes(2), 16);
  CollectiveCall call{.kind = Kind::all_reduce, .bytes = 1_MiB};
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::tree, Algorithm::nvls_tree, Algorithm::collnet_direct,
        Algorithm::collnet_chain, Algorithm::hierarchical}) {
    call.algorithm = algorithm;
    EXPECT_EQ(nccl_choice(shape, call).algorithm, algorithm) << name_of(algorithm);
  }
  call.algorithm = Algorithm::ring;
  call.protocol = Protocol::ll128;
  EXPECT_EQ(nccl_choice(shape, call).protocol, Protocol::ll128);
}

TEST(NcclChoice, WhatNcclDoesNotRunIsAnError) {
  const RingShape shape = shape_of(h100_nodes(1), 8);
  CollectiveCall call{.kind = Kind::all_gather, .bytes = 1_MiB, .algorithm = Algorithm::tree};
  EXPECT_THROW(nccl_choice(shape, call), InputError);
  call = {.kind = Kind::all_reduce, .bytes = 1_MiB, .algorithm = Algorithm::collnet_direct};
  EXPECT_THROW(nccl_choice(shape, call), InputError);
}

TEST(NcclChoice, SmallMessagesTakeFewChannels) {
  const RingShape shape = shape_of(h100_nodes(1), 8);
  EXPECT_EQ(nccl_channels(shape, Algorithm::ring, Protocol::simple, 1_GiB), 24);
  EXPECT_EQ(nccl_channels(shape, Algorithm::ring, Protocol::ll, 1_KiB), 1);
  // LL: 512 threads of 8 bytes for each of 8 ranks
  EXPECT_EQ(nccl_channels(shape, Algorithm::ring, Protocol::ll, 128_KiB), 4);
  EXPECT_LT(nccl_channels(shape, Algorithm::nvls, Protocol::simple, 1_GiB), 24);
}

TEST(CollectiveNames, AreReadAsTheyAreWritten) {
  EXPECT_EQ(collective_kind_of("AllReduce"), Kind::all_reduce);
  EXPECT_EQ(collective_kind_of("alltoall"), Kind::all_to_all);
  EXPECT_EQ(collective_kind_of("all"), std::nullopt);
  EXPECT_EQ(collective_algorithm_of("NVLSTree"), Algorithm::nvls_tree);
  EXPECT_EQ(collective_protocol_of("LL128"), Protocol::ll128);
  EXPECT_EQ(collective_protocol_of(""), std::nullopt);
}

TEST(CollectiveCost, MoreBandwidthOfAnyLinkIsNeverSlower) {
  for (const int nodes : {1, 2, 4}) {
    const std::vector<int> ranks = first_gpus(8 * nodes);
    for (std::int64_t bytes = 64; bytes < (1LL << 33); bytes *= 4) {
      for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather,
                              Kind::broadcast, Kind::all_to_all, Kind::send_recv}) {
        Seconds before(1e9);
        for (const double rate : {10.0, 12.5, 20.0, 25.0, 50.0, 100.0}) {
          const Topology topology(h100_nodes(nodes, rate));
          const Seconds time = collective_cost(topology, kind, Bytes(bytes), ranks).solo_time;
          ASSERT_LE(time.value(), before.value() * (1 + 1e-9)) << bytes << " B " << rate;
          before = time;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera
