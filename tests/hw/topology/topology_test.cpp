#include "hw/topology/topology.h"

#include <map>
#include <set>

#include "hw/units/input_error.h"
#include "tests/hw/boxes.h"

namespace tessera {
namespace {

std::vector<std::string> names(const Topology& topology, const Route& route) {
  std::vector<std::string> result;
  for (const LinkId id : route.links) result.push_back(topology.link(id).name);
  return result;
}

/// Ends of "node0/gpu1->gpu2"; the fabric is one place for all nodes.
std::pair<std::string, std::string> ends_of(const Link& link) {
  const std::size_t slash = link.name.find('/');
  const std::size_t arrow = link.name.find("->");
  const std::string node = link.name.substr(0, slash + 1);
  const auto place = [&](const std::string& end) { return end == "fabric" ? end : node + end; };
  return {place(link.name.substr(slash + 1, arrow - slash - 1)),
          place(link.name.substr(arrow + 2))};
}

std::string place_of_gpu(const Topology& topology, int gpu) {
  const int per_node = topology.cluster().node.gpu_count;
  return "node" + std::to_string(gpu / per_node) + "/gpu" + std::to_string(gpu % per_node);
}

/// The slot of a NIC is no link of its own: ways step from a PCIe switch or socket onto the NIC.
bool meets(const std::string& end, const std::string& begin) {
  const auto is_nic = [](const std::string& place) { return place.find("/nic") != place.npos; };
  return end == begin || is_nic(begin) || is_nic(end);
}

void expect_connected(const Topology& topology, int from, int to) {
  const Route route = topology.route(from, to);
  std::string at = place_of_gpu(topology, from);
  Seconds latency;
  for (const LinkId id : route.links) {
    const auto [begin, end] = ends_of(topology.link(id));
    ASSERT_TRUE(meets(at, begin)) << at << " to " << begin << ", from " << from << " to " << to;
    at = end;
    latency += topology.link(id).latency;
  }
  EXPECT_EQ(at, place_of_gpu(topology, to));
  EXPECT_EQ(route.latency, latency);
}

TEST(Topology, DirectPairsOfHgxH100HaveSixLinksOf25GBps) {
  NodeSpec node = boxes::h100_mesh();
  node.nvlink_efficiency = 1;  // raw
  const Topology topology(boxes::alone(node));
  const LinkId bundle = topology.nvlink_bundle(0, 3);
  EXPECT_EQ(topology.link(bundle).bandwidth, 150_GBps);
  EXPECT_EQ(topology.link(bundle).lanes, 6);
  EXPECT_EQ(topology.link(bundle).name, "node0/gpu0->gpu3");
}

TEST(Topology, LinkRateIsLineRateTimesEfficiency) {
  const Topology topology(boxes::alone(boxes::h100_mesh()));
  const double usable = topology.link(topology.nvlink_bundle(1, 2)).bandwidth.value();
  EXPECT_NEAR(usable, 6 * 20.6e9, 1);
}

TEST(Topology, CubeMeshGivesEveryGpuSixLinksAndFourNeighbours) {
  const Topology topology(boxes::alone(boxes::v100_cube_mesh()));
  for (int gpu = 0; gpu < 8; ++gpu) {
    int lanes = 0;
    int neighbours = 0;
    for (int other = 0; other < 8; ++other) {
      const LinkId bundle = topology.nvlink_bundle(gpu, other);
      ASSERT_EQ(bundle.valid(), topology.nvlink_bundle(other, gpu).valid());
      if (!bundle.valid()) continue;
      EXPECT_EQ(topology.link(bundle).lanes,
                topology.link(topology.nvlink_bundle(other, gpu)).lanes);
      lanes += topology.link(bundle).lanes;
      ++neighbours;
    }
    EXPECT_EQ(lanes, 6) << "GPU " << gpu;
    EXPECT_EQ(neighbours, 4) << "GPU " << gpu;
  }
}

TEST(Topology, CubeMeshRelaysThroughTheWidestNeighbour) {
  const Topology topology(boxes::alone(boxes::v100_cube_mesh()));
  // 0-4-7 has 2 and 2 links, 0-3-7 has 2 and 1.
  EXPECT_THAT(names(topology, topology.route(0, 7)),
              testing::ElementsAre("node0/gpu0->gpu4", "node0/gpu4->gpu7"));
  EXPECT_EQ(topology.route(0, 7).latency, 2_us);
  // 0-1-5 and 0-4-5 are both one link wide: the lower number.
  EXPECT_THAT(names(topology, topology.route(0, 5)),
              testing::ElementsAre("node0/gpu0->gpu1", "node0/gpu1->gpu5"));
}

TEST(Topology, NvswitchRoutesUpAndDownTheGpusPorts) {
  const Topology topology(boxes::alone(boxes::a100_switch()));
  const Route route = topology.route(2, 6);
  EXPECT_THAT(names(topology, route),
              testing::ElementsAre("node0/gpu2->nvswitch", "node0/nvswitch->gpu6"));
  EXPECT_NEAR(topology.link(route.links[0]).bandwidth.value(), 12 * 20e9, 1);
  EXPECT_EQ(topology.link(route.links[0]).lanes, 12);
}

TEST(Topology, GpusBelowOnePcieSwitchMeetThere) {
  const Topology topology(boxes::alone(boxes::pcie_box()));
  EXPECT_THAT(names(topology, topology.route(0, 1)),
              testing::ElementsAre("node0/gpu0->pcie_switch0", "node0/pcie_switch0->gpu1"));
}

TEST(Topology, GpusOfTwoSocketsMeetOverTheSocketLink) {
  const Topology topology(boxes::alone(boxes::pcie_box()));
  EXPECT_THAT(names(topology, topology.route(0, 3)),
              testing::ElementsAre("node0/gpu0->pcie_switch0", "node0/pcie_switch0->socket0",
                                   "node0/socket0->socket1", "node0/socket1->pcie_switch1",
                                   "node0/pcie_switch1->gpu3"));
}

TEST(Topology, GpusBelowOnePcieSwitchShareItsUplinkToTheHost) {
  const Topology topology(boxes::alone(boxes::pcie_box()));
  const Route first = topology.device_to_host(0);
  const Route second = topology.device_to_host(1);
  EXPECT_EQ(first.links.back(), second.links.back());
  EXPECT_NE(first.links.front(), second.links.front());
  EXPECT_NE(first.links.back(), topology.device_to_host(2).links.back());
}

TEST(Topology, HostCopiesOfTheTwoDirectionsShareNoLink) {
  const Topology topology(boxes::alone(boxes::pcie_box()));
  for (const LinkId down : topology.host_to_device(0).links) {
    EXPECT_THAT(topology.device_to_host(0).links, testing::Not(testing::Contains(down)));
  }
}

TEST(Topology, CoherentLinkReplacesPcieToTheHost) {
  GpuSpec gpu = boxes::gpu("GH200", Architecture::hopper, "9.0", 18);
  gpu.c2c_bandwidth = 450_GBps;
  const Topology topology(single_gpu_cluster(gpu));
  const Link& link = topology.link(topology.host_to_device(0).links.front());
  EXPECT_EQ(link.technology, LinkTechnology::c2c);
  EXPECT_EQ(link.bandwidth, 450_GBps * single_gpu_node(gpu).pcie_efficiency);
}

TEST(Topology, NodesMeetOverTheNicOfEachGpu) {
  ClusterSpec cluster = boxes::alone(boxes::a100_switch());
  cluster.node_count = 2;
  cluster.fabric_latency = 0.6_us;
  const Topology topology(cluster);
  const Route route = topology.route(3, 8 + 5);
  EXPECT_THAT(names(topology, route),
              testing::ElementsAre("node0/gpu3->socket0", "node0/nic3->fabric",
                                   "node1/fabric->nic5", "node1/socket0->gpu5"));
  // PCIe 0.5 + NIC 1 + fabric 0.6 + NIC 1 + PCIe 0.5
  EXPECT_NEAR(route.latency.value(), 3.6e-6, 1e-15);
}

TEST(Topology, FewerNicsThanGpusAreSharedByNeighbours) {
  NodeSpec node = boxes::a100_switch();
  node.nic_count = 4;
  const Topology topology(boxes::alone(node));
  EXPECT_EQ(topology.nic_of(0), 0);
  EXPECT_EQ(topology.nic_of(1), 0);
  EXPECT_EQ(topology.nic_of(6), 3);
}

TEST(Topology, EveryPairIsReachableOverConnectedLinks) {
  ClusterSpec two_dgx = boxes::alone(boxes::a100_switch());
  two_dgx.node_count = 2;
  const std::vector<ClusterSpec> clusters = {boxes::alone(boxes::h100_mesh()),
                                             boxes::alone(boxes::v100_cube_mesh()),
                                             boxes::alone(boxes::pcie_box()), two_dgx};
  for (const ClusterSpec& cluster : clusters) {
    const Topology topology(cluster);
    for (int from = 0; from < topology.gpu_count(); ++from) {
      for (int to = 0; to < topology.gpu_count(); ++to) {
        if (from == to) continue;
        ASSERT_FALSE(topology.route(from, to).links.empty());
        expect_connected(topology, from, to);
      }
    }
  }
}

TEST(Topology, WayToItselfIsEmpty) {
  const Topology topology(boxes::alone(boxes::h100_mesh()));
  EXPECT_TRUE(topology.route(2, 2).links.empty());
}

TEST(Topology, LinkNamesAreUnique) {
  ClusterSpec cluster = boxes::alone(boxes::pcie_box());
  const Topology topology(cluster);
  std::set<std::string> seen;
  for (const Link& link : topology.links()) EXPECT_TRUE(seen.insert(link.name).second) << link.name;
}

TEST(Topology, ContradictionsAreReportedTogether) {
  ClusterSpec cluster = boxes::alone(boxes::h100_mesh());
  cluster.node.pairs[0].links = 7;
  cluster.node.gpu.sm_count = 0;
  cluster.node_count = 2;
  try {
    const Topology topology(cluster);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("node.gpu.sm_count: sm_count = 0"));
    EXPECT_THAT(error.what(), testing::HasSubstr("GPU 0 has 19 NVLinks in pairs, but H100 has 18"));
    EXPECT_THAT(error.what(), testing::HasSubstr("2 nodes without a NIC"));
  }
}

}  // namespace
}  // namespace tessera
