#include "sim/collectives/measured_fabric.h"

#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/collectives/collective.h"
#include "sim/collectives/collective_tuning.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

/// Eight GPUs on a switch and eight NICs of 50 GB/s in each of `nodes` nodes.
ClusterSpec cluster_of(int nodes) {
  ClusterSpec cluster;
  cluster.id = "cluster";
  NodeSpec& node = cluster.node;
  node.id = "node";
  node.gpu.id = "gpu";
  node.gpu.architecture = Architecture::hopper;
  node.gpu.sm_count = 132;
  node.gpu.boost_clock = Hertz(1.98e9);
  node.gpu.fp32 = 67_TFLOPS;
  node.gpu.memory = 80_GiB;
  node.gpu.memory_bandwidth = BytesPerSecond(3.35e12);
  node.gpu.nvlink_links = 18;
  node.gpu.nvlink_bandwidth = BytesPerSecond(450e9);
  node.gpu.pcie_bandwidth = BytesPerSecond(64e9);
  node.gpu_count = 8;
  node.interconnect = GpuInterconnect::nvswitch;
  node.nvlink_bandwidth_per_link = BytesPerSecond(25e9);
  node.nvlink_efficiency = 0.8;
  node.nic_count = 8;
  node.nic_bandwidth = BytesPerSecond(50e9);
  node.nic_efficiency = 0.9;
  cluster.node_count = nodes;
  return cluster;
}

double bus_bandwidth(const ClusterSpec& cluster) {
  std::vector<int> ranks(static_cast<std::size_t>(cluster.gpu_count()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const CollectiveCost cost =
      collective_cost(Topology(cluster), CollectiveKind::all_reduce, 1_GiB, ranks);
  const double n = cluster.gpu_count();
  return 2 * (n - 1) / n * (1LL << 30) / cost.solo_time.value();
}

TEST(MeasuredFabric, SlowsNicsUntilTheAllReduceTakesWhatWasMeasured) {
  // 13 GB/s over 32 GPUs: 2 x 31 / 32 GiB / 13e9 = 160 ms, 5 ms a rank: no latency.
  for (const double measured : {200e9, 150e9, 13e9}) {
    ClusterSpec cluster = cluster_of(4);
    cluster.measured_all_reduce = BytesPerSecond(measured);
    const MeasuredFabric fabric = measured_fabric(cluster, {});
    EXPECT_NEAR(bus_bandwidth(fabric.cluster) / measured, 1, 0.01) << measured;
    EXPECT_LT(fabric.nic_share, 1);
    EXPECT_NEAR(fabric.promised.value(), bus_bandwidth(cluster), 1e6);
  }
}

TEST(MeasuredFabric, LeavesAClusterThatPromisesLess) {
  ClusterSpec cluster = cluster_of(4);
  cluster.measured_all_reduce = BytesPerSecond(2 * bus_bandwidth(cluster));
  const MeasuredFabric fabric = measured_fabric(cluster, {});
  EXPECT_EQ(fabric.nic_share, 1);
  EXPECT_EQ(fabric.cluster.node.nic_efficiency, cluster.node.nic_efficiency);
  EXPECT_THAT(note_on_measured_fabric(fabric), HasSubstr("simulated as described"));
}

TEST(MeasuredFabric, IsOfSeveralNodesAndAMeasurement) {
  ClusterSpec one = cluster_of(1);
  one.measured_all_reduce = BytesPerSecond(10e9);
  EXPECT_EQ(measured_fabric(one, {}).nic_share, 1);
  EXPECT_THAT(note_on_measured_fabric(measured_fabric(one, {})),
              HasSubstr("one node is simulated"));
  ClusterSpec table = cluster_of(1);
  table.measured_fabric = {{.nodes = 2, .all_reduce = 320_GBps}};
  EXPECT_THAT(note_on_measured_fabric(measured_fabric(table, {})),
              HasSubstr("one node is simulated"));
  EXPECT_EQ(measured_fabric(cluster_of(2), {}).promised.value(), 0);
  EXPECT_EQ(note_on_measured_fabric(measured_fabric(cluster_of(2), {})), "");
}

TEST(MeasuredFabric, ATableIsReadAtTheSizeOfTheCluster) {
  ClusterSpec cluster = cluster_of(4);
  cluster.measured_fabric = {{.nodes = 2, .all_reduce = 320_GBps},
                             {.nodes = 8, .all_reduce = 180_GBps}};
  const MeasuredFabric fabric = measured_fabric(cluster, {});  // a line through both: 240 GB/s
  EXPECT_NEAR(bus_bandwidth(fabric.cluster) / 240e9, 1, 0.01);
  EXPECT_THAT(
      note_on_measured_fabric(fabric),
      HasSubstr("reaches 240 GB/s by what was measured on fewer and on more nodes (approximate)"));
  cluster.node_count = 8;
  EXPECT_THAT(note_on_measured_fabric(measured_fabric(cluster, {})),
              HasSubstr("was measured at 180 GB/s"));
}

/// 16 nodes, whose all-reduce over 128 GPUs reaches 50 GB/s.
ClusterSpec slow_by_ranks() {
  ClusterSpec cluster = cluster_of(16);
  cluster.measured_all_reduce = BytesPerSecond(50e9);
  return cluster;
}

/// Of 1 GiB over `ranks`, as nccl-tests count it.
double all_reduce_bytes(double ranks) {
  return 2 * (ranks - 1) / ranks * (1LL << 30);
}

CollectiveCost all_gather(const ClusterSpec& cluster, Bytes bytes, int ranks) {
  const MeasuredFabric fabric = measured_fabric(cluster, {});
  std::vector<int> group(static_cast<std::size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  const CollectiveTuning tuning({}, calibrations_of(fabric, {}));
  return collective_cost(Topology(fabric.cluster),
                         {.kind = CollectiveKind::all_gather, .bytes = bytes}, group, tuning);
}

TEST(MeasuredFabric, ATimeThatGrowsWithTheRanksIsTheHosts) {
  const MeasuredFabric fabric = measured_fabric(slow_by_ranks(), {});
  // 42.6 ms, of which 1.5 are the call's own.
  EXPECT_NEAR(fabric.per_rank.value(), (all_reduce_bytes(128) / 50e9 - 1.5e-3) / 128, 1e-9);
  EXPECT_EQ(fabric.nic_share, 1);
  EXPECT_EQ(fabric.cluster.node.nic_efficiency, slow_by_ranks().node.nic_efficiency);
}

TEST(MeasuredFabric, CallsOneAfterTheOtherTakeAtLeastTheHostsTime) {
  const double eight = 8 * measured_fabric(slow_by_ranks(), {}).per_rank.value();
  EXPECT_NEAR(all_gather(slow_by_ranks(), 1_MiB, 8).solo_time.value() / eight, 1, 0.01);
  // 8 GiB inside a node take longer than that.
  const Seconds described = all_gather(cluster_of(16), 8_GiB, 8).solo_time;
  EXPECT_NEAR(all_gather(slow_by_ranks(), 8_GiB, 8).solo_time / described, 1, 0.01);
  // Between nodes links are slower, too, and 8 GiB longer than 16 ranks take the host. The latency
  // in a GiB's time is not slowed, so that transfers alone are by 1.5 % more.
  const Seconds over_nodes = all_gather(cluster_of(16), 8_GiB, 16).solo_time;
  EXPECT_NEAR(all_gather(slow_by_ranks(), 8_GiB, 16).solo_time / over_nodes, 1 / 0.53, 0.03);
}

/// Nodes of eight GPUs, whose calls over all of them take so long.
MeasuredFabric fabric_of(double all_reduce_ms, double all_gather_ms, int nodes = 4) {
  ClusterSpec cluster = cluster_of(nodes);
  const double bytes = all_reduce_bytes(8 * nodes);
  cluster.measured_all_reduce = BytesPerSecond(bytes / (1e-3 * all_reduce_ms));
  cluster.measured_all_gather = BytesPerSecond(bytes / 2 / (1e-3 * all_gather_ms));
  return measured_fabric(cluster, {});
}

TEST(MeasuredFabric, AnAllGatherTellsLinksFromTheHost) {
  // Half the bytes in half the time: links.
  const MeasuredFabric links = fabric_of(12, 6);
  EXPECT_EQ(links.per_rank.value(), 0);
  EXPECT_NEAR(bus_bandwidth(links.cluster) / (all_reduce_bytes(32) / 12e-3), 1, 0.01);
  const MeasuredFabric host = fabric_of(13, 11.2);
  EXPECT_NEAR(host.per_rank.value(), (11.2e-3 - 1.5e-3) / 32, 1e-9);
  EXPECT_EQ(host.nic_share, 1);
}

TEST(MeasuredFabric, JobsOfOneSlowHostSayTheSameOfARankWhateverTheirSize) {
  // Medians of nanotron's jobs of January 2025 on 16, 32, 64 and 128 GPUs [ms].
  const double least = fabric_of(6.09, 6.16, 2).per_rank.value();
  EXPECT_NEAR(least, 0.29e-3, 0.005e-3);
  EXPECT_NEAR(fabric_of(13.03, 10.62).per_rank / Seconds(least), 1, 0.03);
  EXPECT_NEAR(fabric_of(22.40, 19.94, 8).per_rank / Seconds(least), 1, 0.03);
  EXPECT_NEAR(fabric_of(42.73, 39.71, 16).per_rank / Seconds(least), 1, 0.03);
}

TEST(MeasuredFabric, AnAllGatherAsDescribedLeavesLinksAndMessagesAlone) {
  const double gather_ms =
      1e3 * all_gather(cluster_of(16), 1_GiB, 128).solo_time.value() + 0.83;  // and its lists
  const double promised_ms = 1e3 * all_reduce_bytes(128) / bus_bandwidth(cluster_of(16));
  const MeasuredFabric fabric = fabric_of(2 * promised_ms, gather_ms, 16);
  EXPECT_TRUE(fabric.all_reduces_alone);
  EXPECT_EQ(fabric.nic_share, 1);
  const auto groups = slower_collectives(fabric, 32, 4);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].collective, CollectiveKind::all_reduce);
  EXPECT_NEAR(correction_at(groups[0].corrections, 1_GiB), 2, 0.02);
  for (const GroupCalibration& group : calibrations_of(fabric, {}))
    EXPECT_EQ(group.collective, CollectiveKind::all_reduce);
  EXPECT_THAT(note_on_measured_fabric(fabric), HasSubstr("all-gathers were measured as described"));
  // A third longer is neither.
  EXPECT_FALSE(fabric_of(2 * promised_ms, 1.33 * gather_ms, 16).all_reduces_alone);
}

TEST(MeasuredFabric, ARingThatTakesTimeForEachNodeIsAsDescribed) {
  // nanotron's jobs of December 2024 on 64 nodes: 12.8 ms and, a ring of 0.31 ms a node, 24.7 ms.
  ClusterSpec cluster = cluster_of(64);
  const double bytes = all_reduce_bytes(512);
  cluster.measured_all_reduce = BytesPerSecond(bytes / 12.79e-3);
  cluster.measured_all_gather = BytesPerSecond(bytes / 2 / 24.70e-3);
  EXPECT_FALSE(measured_fabric(cluster, {}).all_reduces_alone);
  cluster.node.nic_ring_latency = 310_us;
  EXPECT_TRUE(measured_fabric(cluster, {}).all_reduces_alone);
}

TEST(MeasuredFabric, LinksTakeNoMoreOfAnAllReduceThanTwiceTheAllGather) {
  // 5.5 ms over 32 ranks are no slow host; 60 ms are not what links take that gather so fast.
  const MeasuredFabric fabric = fabric_of(60, 5.5);
  EXPECT_EQ(fabric.per_rank.value(), 0);
  EXPECT_NEAR(bus_bandwidth(fabric.cluster) / (all_reduce_bytes(32) / 11e-3), 1, 0.01);
}

TEST(MeasuredFabric, AHostIsSlowWhereItsAllReduceIs) {
  // What is promised is kept; the all-gather copies into lists.
  const double promised_ms = 1e3 * all_reduce_bytes(32) / bus_bandwidth(cluster_of(4));
  EXPECT_EQ(fabric_of(1.1 * promised_ms, 11.2).per_rank.value(), 0);
}

TEST(MeasuredFabric, ASlowHostHidesThatCollectivesReachAShareOfThePromised) {
  // 53 % of what is promised, which an all-reduce of 13 ms leaves room for.
  const MeasuredFabric host = fabric_of(13, 11.2);
  ASSERT_LT(1e3 * all_reduce_bytes(32) / bus_bandwidth(cluster_of(4)) / 0.53, 13);
  EXPECT_NEAR(correction_at(host.collectives, 1_GiB), 1 / 0.53, 0.01);
  // A small one is latency, which no link changes.
  EXPECT_NEAR(correction_at(host.collectives, 1_KiB), 1, 0.1);
  // Links took no longer than the call did.
  const double promised_ms = 1e3 * all_reduce_bytes(32) / bus_bandwidth(cluster_of(4));
  EXPECT_NEAR(correction_at(fabric_of(1.3 * promised_ms, 8).collectives, 1_GiB), 1.3, 0.01);
}

TEST(MeasuredFabric, LinksBehindASlowHostAreThoseBetweenNodes) {
  const MeasuredFabric host = fabric_of(13, 11.2);
  EXPECT_TRUE(slower_collectives(host, 8, 1).empty());
  const std::vector<GroupCalibration> groups = slower_collectives(host, 16, 2);
  ASSERT_EQ(groups.size(), 3U);  // all-reduce, all-gather, reduce-scatter
  EXPECT_EQ(groups[0].ranks, 16);
  EXPECT_EQ(groups[0].nodes, 2);
  // Where links alone are slow, NICs are, which groups find by themselves.
  EXPECT_TRUE(slower_collectives(fabric_of(12, 6), 16, 2).empty());
}

TEST(MeasuredFabric, SaysWhichItTakesForSlow) {
  EXPECT_THAT(note_on_measured_fabric(measured_fabric(slow_by_ranks(), {})),
              HasSubstr("us for each of its ranks (approximate), messages find NICs as described"));
}

TEST(MeasuredFabric, SaysWhatCollectivesBehindASlowHostReach) {
  EXPECT_THAT(note_on_measured_fabric(fabric_of(13, 11.2)), HasSubstr("53 % of what is promised"));
  const double promised_ms = 1e3 * all_reduce_bytes(32) / bus_bandwidth(cluster_of(4));
  EXPECT_THAT(note_on_measured_fabric(fabric_of(promised_ms / 0.8, 8)),
              HasSubstr("80 % of what is promised"));
}

TEST(MeasuredFabric, SaysWhatIsLeftOfTheNics) {
  ClusterSpec cluster = cluster_of(4);
  cluster.measured_all_reduce = BytesPerSecond(20e9);
  const std::string note = note_on_measured_fabric(measured_fabric(cluster, {}));
  EXPECT_THAT(note, HasSubstr("measured at 20 GB/s"));
  EXPECT_THAT(note, HasSubstr("NICs are simulated at"));
}

}  // namespace
}  // namespace tessera
