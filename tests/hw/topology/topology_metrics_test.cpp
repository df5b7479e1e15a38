#include "hw/topology/topology_metrics.h"

#include <cmath>

#include "hw/topology/max_flow.h"
#include "tests/hw/fabrics.h"

namespace tessera {
namespace {

double bisection(const ClusterSpec& cluster) {
  return metrics_of(Topology(cluster)).bisection.value() / 1e9;
}

TEST(MaxFlow, FindsTheFlowThatNeedsAnAugmentingWayBack) {
  // The textbook square with a diagonal: greedy 0-1-2-3 has to be undone in part. 2 in all.
  MaxFlow flow(4);
  flow.add_edge(0, 1, 1);
  flow.add_edge(0, 2, 1);
  flow.add_edge(1, 2, 1);
  flow.add_edge(1, 3, 1);
  flow.add_edge(2, 3, 1);
  EXPECT_EQ(flow.between(0, 3), 2);
}

TEST(MaxFlow, StopsAtTheNarrowestCut) {
  MaxFlow flow(5);
  flow.add_edge(0, 1, 10);
  flow.add_edge(0, 2, 10);
  flow.add_edge(1, 3, 4);
  flow.add_edge(2, 3, 5);
  flow.add_edge(3, 4, 100);
  EXPECT_EQ(flow.between(0, 4), 9);
}

TEST(TopologyMetrics, BisectionOfAMeshIsItsFourBundlesAndTheHostLinks) {
  // 4 bundles of 6 x 20.6 between {0, 1} and {2, 3}, and each GPU's 32 GB/s over the one socket
  EXPECT_NEAR(bisection(boxes::alone(boxes::h100_mesh())), 4 * 6 * 20.6 + 2 * 32, 1e-6);
}

TEST(TopologyMetrics, GpusOfASingleNodeDoNotMeetOverItsNics) {
  // 4 of 8 ports of 240 GB/s, and the host links over the one socket; not 4 NICs of 25 GB/s
  EXPECT_NEAR(bisection(boxes::alone(boxes::a100_switch())), 4 * 240 + 4 * 32, 1e-6);
}

TEST(TopologyMetrics, BisectionOfAClusterIsThatOfItsNics) {
  // 4 nodes of 8 NICs of 25 GB/s to 4 others; rails are non-blocking
  const TopologyMetrics metrics = metrics_of(Topology(fabrics::rails()));
  EXPECT_NEAR(metrics.bisection.value() / 1e9, 4 * 8 * 25, 1e-6);
  EXPECT_NEAR(metrics.oversubscription, 1, 1e-9);
  EXPECT_NEAR(metrics.network_per_gpu.value(), 25e9, 1);
  EXPECT_NEAR(metrics.nvlink_per_gpu.value(), 240e9, 1);
}

TEST(TopologyMetrics, OversubscriptionsOfTheTiersMultiply) {
  // 1:2 in the racks and 1:3 above the pods: the lower 8 of 16 nodes send 8 x 200 / 6
  const TopologyMetrics metrics = metrics_of(Topology(fabrics::clos()));
  EXPECT_NEAR(metrics.bisection.value() / 1e9, 1600.0 / 6, 1e-6);
  EXPECT_NEAR(metrics.oversubscription, 6, 1e-9);
}

TEST(TopologyMetrics, BisectionOfATorusIsTwoCutsOfItsRing) {
  // 4 x 5 with halves by the first dimension: 2 cuts x 5 cables of 100 GB/s
  EXPECT_NEAR(bisection(fabrics::torus("4x5", 20)), 2 * 5 * 100, 1e-6);
}

TEST(TopologyMetrics, EveryoneShiftingByHalfTheClusterSharesUplinksByHash) {
  const TopologyMetrics metrics = metrics_of(Topology(fabrics::rails()));
  // A uplink of 25 GB/s carries a whole number of flows of up to 25 GB/s each.
  const double flows = 25e9 / metrics.shift_rate.value();
  EXPECT_NEAR(flows, std::round(flows), 1e-9);
  EXPECT_GE(flows, 1);
  EXPECT_LE(flows, 4);  // nodes of a unit
}

TEST(TopologyMetrics, DiameterIsTheLongestRoute) {
  const TopologyMetrics metrics = metrics_of(Topology(fabrics::clos()));
  // PCIe, NIC, leaf-spine-core-spine-leaf (4), NIC, PCIe
  EXPECT_EQ(metrics.diameter, 8);
  EXPECT_TRUE(metrics.all_pairs);
  EXPECT_EQ(metrics.pairs, 128 * 127);
}

}  // namespace
}  // namespace tessera
