#include <map>
#include <set>

#include "hw/topology/topology.h"
#include "hw/units/input_error.h"
#include "hw/validation.h"
#include "tests/hw/fabrics.h"

namespace tessera {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> fabric_links(const Topology& topology, const Route& route) {
  std::vector<std::string> names;
  for (const LinkId id : route.links) {
    const Link& link = topology.link(id);
    if (link.technology == LinkTechnology::fabric) names.push_back(link.name.substr(7));
  }
  return names;
}

/// Every step of a route through the fabric begins where the last one ended, at the switches of the
/// two NICs, and takes no missing link.
void expect_connected(const Topology& topology, int from, int to, int flow) {
  const SwitchGraph& graph = topology.fabric().graph();
  const int first = topology.link_of_fabric(0).index();
  const Route route = topology.route(from, to, flow);
  int at = -1;
  Seconds latency;
  for (const LinkId id : route.links) {
    EXPECT_FALSE(topology.is_missing(id));
    latency += topology.link(id).latency;
    if (topology.link(id).technology != LinkTechnology::fabric) continue;
    const LinkEnds& ends = graph.ends()[static_cast<std::size_t>(id.index() - first)];
    if (at >= 0) {
      ASSERT_EQ(ends.from, at);
    }
    at = ends.to;
  }
  EXPECT_EQ(route.latency, latency);
  const int nics = nic_bundles(topology.cluster().node);
  const int to_port = topology.node_of(to) * nics + topology.nic_of(to);
  if (at >= 0) {
    EXPECT_EQ(at, topology.fabric().place_of_port(to_port));
  }
}

void expect_all_connected(const ClusterSpec& cluster) {
  const Topology topology(cluster);
  for (int from = 0; from < topology.gpu_count(); ++from) {
    for (int to = 0; to < topology.gpu_count(); ++to) {
      for (int flow = 0; flow < 3; ++flow) expect_connected(topology, from, to, flow);
    }
  }
}

TEST(Fabric, EveryPairIsConnectedOnEveryKind) {
  expect_all_connected(fabrics::rails());
  expect_all_connected(fabrics::clos());
  expect_all_connected(fabrics::dragonfly());
  expect_all_connected(fabrics::torus("2x4", 8));
  expect_all_connected(fabrics::torus("4x4x4", 8));
  expect_all_connected(fabrics::torus("3x5", 15));
  expect_all_connected(fabrics::graph());
}

TEST(Fabric, RoutesAreRepeatableAndDifferBetweenFlows) {
  const Topology topology(fabrics::rails());
  const Topology again(fabrics::rails());
  std::set<std::vector<LinkId>> ways;
  for (int flow = 0; flow < 64; ++flow) {
    const Route route = topology.route(0, 32, flow);
    EXPECT_EQ(route.links, again.route(0, 32, flow).links);
    ways.insert(route.links);
  }
  EXPECT_EQ(ways.size(), 4u);  // one per spine
}

TEST(Fabric, HashSpreadsPairsEvenlyOverSpines) {
  ClusterSpec cluster = fabrics::rails();
  cluster.node_count = 256;
  const Topology topology(cluster);
  std::map<std::string, int> uses;
  int pairs = 0;
  for (int node = 0; node < 128; ++node) {
    const int from = 8 * node;
    const int to = 8 * (node + 128);
    const std::string up = fabric_links(topology, topology.route(from, to)).front();
    ++uses[up.substr(up.find("spine"))];
    ++pairs;
  }
  // 128 pairs over 4 spines: 32 each, give or take 4 standard deviations of sqrt(128 * 3/16) = 4.9
  for (const auto& [spine, count] : uses) EXPECT_NEAR(count, pairs / 4, 20) << spine;
  EXPECT_EQ(uses.size(), 4u);
}

TEST(RailOptimized, TheSameRailOfAUnitMeetsAtItsLeaf) {
  const Topology topology(fabrics::rails());
  const Route route = topology.route(3, 8 + 3);
  EXPECT_THAT(fabric_links(topology, route), ElementsAre());
  EXPECT_EQ(topology.link(route.links[1]).name, "node0/nic3->fabric");
}

TEST(RailOptimized, AnotherRailIsReachedOverTheNvlinkNeighbourThatOwnsIt) {
  const Topology topology(fabrics::rails());
  const Route route = topology.route(3, 8 + 5);
  std::vector<std::string> names;
  for (const LinkId id : route.links) names.push_back(topology.link(id).name);
  EXPECT_THAT(names,
              ElementsAre("node0/gpu3->nvswitch", "node0/nvswitch->gpu5", "node0/gpu5->socket0",
                          "node0/nic5->fabric", "node1/fabric->nic5", "node1/socket0->gpu5"));
}

TEST(RailOptimized, UnitsMeetOverASpine) {
  const Topology topology(fabrics::rails());
  const auto way = fabric_links(topology, topology.route(2, 4 * 8 + 2));
  ASSERT_EQ(way.size(), 2u);
  EXPECT_THAT(way[0], testing::StartsWith("leaf2->spine"));
  EXPECT_THAT(way[1], testing::EndsWith("->leaf10"));
  // 4 nodes x 25 GB/s over 4 spines without oversubscription
  const LinkId up = topology.route(2, 4 * 8 + 2).links[2];
  EXPECT_NEAR(topology.link(up).bandwidth.value(), 25e9, 1);
}

TEST(Clos, UplinksFollowFromTheOversubscriptions) {
  const Topology topology(fabrics::clos());
  const Route route = topology.route(0, 15 * 8);
  const auto way = fabric_links(topology, route);
  ASSERT_EQ(way.size(), 4u);
  std::vector<double> rates;
  for (const LinkId id : route.links) {
    const Link& link = topology.link(id);
    if (link.technology == LinkTechnology::fabric) rates.push_back(link.bandwidth.value() / 1e9);
  }
  // Leaf: 16 NICs x 25 = 400 GB/s, over 4 spines and 1:2 = 50. Spine: 2 leaves x 50 = 100 from
  // below, over 2 cores and 1:3 = 16.67.
  EXPECT_THAT(rates,
              ElementsAre(testing::DoubleNear(50, 1e-9), testing::DoubleNear(100. / 6, 1e-9),
                          testing::DoubleNear(100. / 6, 1e-9), testing::DoubleNear(50, 1e-9)));
}

TEST(Clos, RackNeighboursMeetAtTheirLeafAndPodNeighboursAtASpine) {
  const Topology topology(fabrics::clos());
  EXPECT_EQ(fabric_links(topology, topology.route(0, 8)).size(), 0u);
  EXPECT_EQ(fabric_links(topology, topology.route(0, 3 * 8)).size(), 2u);
}

TEST(Dragonfly, AWayCrossesAtMostOneLinkBetweenGroups) {
  const Topology topology(fabrics::dragonfly());
  EXPECT_THAT(fabric_links(topology, topology.route(0, 8)),
              ElementsAre("group0.switch0->group0.switch2"));
  for (int to = 16; to < 64; ++to) {
    const auto way = fabric_links(topology, topology.route(0, to));
    int global = 0;
    for (const std::string& link : way) {
      const std::string from = link.substr(0, link.find('.'));
      const std::string end = link.substr(link.find("->") + 2);
      if (from != end.substr(0, end.find('.'))) ++global;
    }
    EXPECT_EQ(global, 1);
    EXPECT_LE(way.size(), 3u);
  }
}

TEST(Dragonfly, ASwitchWithALinkToTheGroupUsesIt) {
  // Four links between groups of four switches: each switch has one, so no hop before it.
  ClusterSpec cluster = fabrics::dragonfly();
  cluster.fabric.global_links = 4;
  const Topology topology(cluster);
  for (int from = 0; from < 16; ++from) {
    const std::string own = "group0.switch" + std::to_string(from / 4) + "->group1.switch";
    EXPECT_THAT(fabric_links(topology, topology.route(from, 16)).front(), HasSubstr(own));
  }
}

TEST(Torus, WaysGoDimensionByDimensionTheShortWayRound) {
  const Topology topology(fabrics::torus("4x5", 20));
  // (0,0) to (3,2): one step back in the first dimension, two ahead in the second
  EXPECT_THAT(fabric_links(topology, topology.route(0, (3 * 5 + 2) * 8)),
              ElementsAre("router0.0->router3.0", "router3.0->router3.1", "router3.1->router3.2"));
}

TEST(Torus, HasTwoCablesPerRouterAndLongDimensionAndOneCablePerPair) {
  // 4 x 5: 20 routers, 2 dimensions, 2 directions each; 2 x 4: 4 cables of the short dimension
  EXPECT_EQ(Topology(fabrics::torus("4x5", 20)).fabric().graph().links().size(), 80u);
  EXPECT_EQ(Topology(fabrics::torus("2x4", 8)).fabric().graph().links().size(), 2u * (4 + 8));
}

TEST(GraphFabric, ParallelCablesShareTheFlows) {
  const Topology topology(fabrics::graph());
  std::set<std::string> middles;
  for (int flow = 0; flow < 32; ++flow) {
    const auto way = fabric_links(topology, topology.route(0, 2, flow));
    ASSERT_EQ(way.size(), 3u);
    middles.insert(way[1]);
  }
  EXPECT_THAT(middles, ElementsAre("left->right", "left->right#2"));
}

TEST(Faults, ADegradedCableLosesBandwidthInBothDirections) {
  ClusterSpec cluster = fabrics::nodes(2);
  cluster.faults = {{"node1/nic2->fabric", 0.25}};
  const Topology topology(cluster);
  std::map<std::string, double> rates;
  for (const Link& link : topology.links()) rates[link.name] = link.bandwidth.value();
  EXPECT_EQ(rates["node1/nic2->fabric"], 25e9 / 4);
  EXPECT_EQ(rates["node1/fabric->nic2"], 25e9 / 4);
  EXPECT_EQ(rates["node0/nic2->fabric"], 25e9);
}

TEST(Faults, AMissingNicHandsItsGpuToTheNextNic) {
  ClusterSpec cluster = fabrics::nodes(2);
  cluster.faults = {{"node1/nic2->fabric"}};
  const Topology topology(cluster);
  EXPECT_EQ(topology.nic_of(2), 2);
  EXPECT_EQ(topology.nic_of(8 + 2), 3);
  expect_all_connected(cluster);
}

TEST(Faults, AMissingNvlinkBundleIsGoneRound) {
  ClusterSpec cluster = boxes::alone(boxes::h100_mesh());
  cluster.faults = {{"node0/gpu0->gpu3", 0, true}};
  const Topology topology(cluster);
  EXPECT_EQ(topology.route(0, 3).links.size(), 2u);
  EXPECT_EQ(topology.route(3, 0).links.size(), 1u);
  EXPECT_FALSE(topology.nvlink_bundle(0, 3).valid());
}

TEST(Faults, MissingLinksOfEveryFabricAreGoneRound) {
  ClusterSpec rails = fabrics::rails();
  rails.faults = {{"fabric/leaf*->spine1"}, {"fabric/leaf2->spine*"}};
  rails.faults[1].link = "fabric/leaf2->spine0";
  expect_all_connected(rails);
  ClusterSpec clos = fabrics::clos();
  clos.faults = {{"fabric/spine0->core*"}};
  expect_all_connected(clos);
  ClusterSpec torus = fabrics::torus("2x4", 8);
  torus.faults = {{"fabric/router0.0->router0.1"}};
  expect_all_connected(torus);
  ClusterSpec dragonfly = fabrics::dragonfly();
  dragonfly.faults = {{"fabric/group0.switch0->group0.switch1"}};
  expect_all_connected(dragonfly);
  ClusterSpec graph = fabrics::graph();
  graph.faults = {{"fabric/left->right#2"}};
  expect_all_connected(graph);
}

TEST(Faults, ThatCutTheClusterInTwoAreReported) {
  ClusterSpec graph = fabrics::graph();
  graph.faults = {{"fabric/left->right*"}};
  const auto problems = problems_of(graph);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].what, HasSubstr("the first is NIC 0 of node 2"));
}

TEST(Faults, ThatNameNoLinkAreReportedWithNamesThatExist) {
  ClusterSpec cluster = fabrics::nodes(1);
  cluster.faults = {{"node0/gpu9->gpu8"}};
  const auto problems = problems_of(cluster);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].text(), HasSubstr("names no link"));
  EXPECT_THAT(problems[0].text(), HasSubstr("node0/gpu0->nvswitch"));
  EXPECT_THROW(Topology{cluster}, InputError);
}

TEST(Faults, ThatLeaveAGpuWithoutTheHostAreReported) {
  ClusterSpec cluster = fabrics::nodes(2);
  cluster.faults = {{"node1/gpu4->socket0"}};
  EXPECT_THAT(problems_of(cluster).at(0).what, HasSubstr("node 1: GPU 4 cannot reach"));
}

TEST(Nics, SeveralPerGpuAreOneBundle) {
  NodeSpec node = boxes::a100_switch();
  node.nic_count = 32;
  ClusterSpec cluster = boxes::alone(node);
  cluster.node_count = 2;
  const Topology topology(cluster);
  const Route route = topology.route(5, 8 + 5);
  const Link& nic = topology.link(route.links[1]);
  EXPECT_EQ(nic.name, "node0/nic5->fabric");
  EXPECT_EQ(nic.lanes, 4);
  EXPECT_NEAR(nic.bandwidth.value(), 100e9, 1);
}

TEST(HostEndpoints, MemoryAndDrivesHangOnTheSockets) {
  NodeSpec node = boxes::pcie_box();
  node.host_memory_bandwidth = 200_GBps;
  node.nvme_count = 3;
  node.nvme_read_bandwidth = 6_GBps;
  node.nvme_write_bandwidth = 4_GBps;
  const Topology topology(boxes::alone(node));
  const auto last = [&](const Route& route) { return topology.link(route.links.back()); };
  const auto first = [&](const Route& route) { return topology.link(route.links.front()); };
  EXPECT_EQ(last(topology.device_to_host(3)).name, "node0/socket1->memory1");
  EXPECT_EQ(first(topology.host_to_device(0)).bandwidth, 200_GBps);
  // 3 drives over 2 sockets: one and two
  EXPECT_EQ(last(topology.device_to_nvme(0)).bandwidth, 4_GBps);
  EXPECT_EQ(first(topology.nvme_to_device(3)).bandwidth, 12_GBps);
  EXPECT_EQ(topology.device_to_nvme(0).links.size(), 3u);  // GPU, PCIe switch, drives
}

TEST(HostEndpoints, SocketsWithoutDrivesUseTheNext) {
  NodeSpec node = boxes::pcie_box();
  node.nvme_count = 1;
  node.nvme_read_bandwidth = 6_GBps;
  node.nvme_write_bandwidth = 4_GBps;
  const Topology topology(boxes::alone(node));
  EXPECT_EQ(topology.nvme_to_device(0).links.size(), 4u);  // over the sockets' link
  EXPECT_EQ(topology.nvme_to_device(3).links.size(), 3u);
}

auto problem_at(const std::string& where) {
  return Contains(testing::Field(&Problem::where, where));
}

TEST(FabricRules, SizesThatDoNotFitAreReported) {
  EXPECT_THAT(problems_of(fabrics::torus("3x3", 8)), problem_at("fabric.dimensions"));
  EXPECT_THAT(problems_of(fabrics::torus("2x-4", 8)), problem_at("fabric.dimensions"));
  ClusterSpec rails = fabrics::rails();
  rails.fabric.spines = 0;
  EXPECT_THAT(problems_of(rails), problem_at("fabric.spines"));
  ClusterSpec clos = fabrics::clos();
  clos.fabric.cores = 0;
  EXPECT_THAT(problems_of(clos), problem_at("fabric.cores"));
  ClusterSpec dragonfly = fabrics::dragonfly();
  dragonfly.fabric.global_bandwidth = BytesPerSecond(0);
  EXPECT_THAT(problems_of(dragonfly), problem_at("fabric.global_bandwidth"));
  ClusterSpec graph = fabrics::graph();
  graph.fabric.links[0].to = "top";
  EXPECT_THAT(problems_of(graph), problem_at("fabric.links[0].to"));
  for (const ClusterSpec& whole : {fabrics::rails(), fabrics::clos(), fabrics::dragonfly()}) {
    EXPECT_THAT(problems_of(whole), testing::IsEmpty());
  }
}

TEST(FabricRules, ASocketLinkIsNeededWhereGpusMeetOverIt) {
  NodeSpec node = boxes::a100_switch();
  node.sockets = 2;
  EXPECT_THAT(problems_of(node), Not(problem_at("socket_bandwidth")));
  node.nic_count = 1;
  EXPECT_THAT(problems_of(node), problem_at("socket_bandwidth"));
}

TEST(LinkNames, StarsMatchAnyCharacters) {
  EXPECT_TRUE(matches("node*/nic0->fabric", "node12/nic0->fabric"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(matches("a*b", "abc"));
  EXPECT_FALSE(matches("ab", "abc"));
  EXPECT_EQ(reversed_link_name("fabric/a->b#2"), "fabric/b->a#2");
}

}  // namespace
}  // namespace tessera
