#include "sim/collectives/measured_fabric.h"

#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/collectives/collective.h"

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
  EXPECT_EQ(measured_fabric(cluster_of(2), {}).promised.value(), 0);
}

/// 16 nodes, whose all-reduce over 128 GPUs reaches 50 GB/s.
ClusterSpec slow_by_ranks() {
  ClusterSpec cluster = cluster_of(16);
  cluster.measured_all_reduce = BytesPerSecond(50e9);
  return cluster;
}

CollectiveCost all_gather(const ClusterSpec& cluster, Bytes bytes, int ranks) {
  const MeasuredFabric fabric = measured_fabric(cluster, {});
  std::vector<int> group(static_cast<std::size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  const CollectiveTuning tuning({}, calibrations_of(fabric, {}));
  return collective_cost(Topology(fabric.cluster),
                         {.kind = CollectiveKind::all_gather, .bytes = bytes}, group, tuning);
}

TEST(MeasuredFabric, ATimeThatGrowsWithTheRanksIsEveryCollectives) {
  const ClusterSpec cluster = slow_by_ranks();
  const MeasuredFabric fabric = measured_fabric(cluster, {});
  // 2 x 127 / 128 x 1 GiB / 50 GB/s = 42.6 ms, less what is promised, over 128 ranks.
  const double bus_bytes = 2 * 127.0 / 128 * (1LL << 30);
  const double more = bus_bytes / 50e9 - bus_bytes / fabric.promised.value();
  EXPECT_NEAR(fabric.per_rank.value(), more / 128, 1e-9);
  EXPECT_EQ(fabric.nic_share, 1);
  EXPECT_EQ(fabric.cluster.node.nic_efficiency, cluster.node.nic_efficiency);
  // Inside a node too: eight ranks, whatever they send.
  const double eight = 8 * fabric.per_rank.value();
  for (const Bytes bytes : {1_MiB, 16_MiB, 64_MiB}) {
    ClusterSpec described = cluster;
    described.measured_all_reduce = {};
    const Seconds without = all_gather(described, bytes, 8).solo_time;
    EXPECT_NEAR((all_gather(cluster, bytes, 8).solo_time - without).value() / eight, 1, 0.01);
  }
}

TEST(MeasuredFabric, SaysWhichItTakesForSlow) {
  EXPECT_THAT(note_on_measured_fabric(measured_fabric(slow_by_ranks(), {})),
              HasSubstr("more for each of its ranks (approximate)"));
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
