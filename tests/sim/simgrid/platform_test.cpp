#include "sim/simgrid/platform.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "sim/engine/clock/sim_clock.h"
#include "sim/simgrid/simgrid_links.h"
#include "sim/simgrid/simgrid_session.h"
#include "tests/hw/fabrics.h"

namespace tessera {
namespace {

constexpr double kPicosecond = 1e-12;

struct Message {
  int from = 0;
  int to = 0;
  double bytes = 0;
  Seconds start;
};

/// When messages between GPUs end that share the links of their computed routes.
std::vector<double> end_times(const ClusterSpec& cluster, const std::vector<Message>& messages) {
  const auto engine = start_simgrid();
  const Topology topology(cluster);
  SimClock clock;
  const Platform platform(topology.links(), topology.gpu_count(),
                          [&](int from, int to) { return topology.route(from, to).links; });
  SimGridClock simgrid;
  std::vector<double> ends(messages.size(), -1);
  std::vector<simgrid::s4u::CommPtr> running(messages.size());
  simgrid::s4u::Activity::on_completion_cb([&](const simgrid::s4u::Activity& activity) {
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (running[i].get() != &activity) continue;
      ends[i] = simgrid::s4u::Engine::get_clock();
      clock.release();
    }
  });
  for (std::size_t i = 0; i < messages.size(); ++i) {
    clock.at(messages[i].start, [&, i] {
      clock.occupy();  // the clock may not run ahead of SimGrid's flows
      const double parts = messages[i].bytes * Platform::kPartsOfByte;
      running[i] = simgrid::s4u::Comm::sendto_async(&platform.gpu_host(messages[i].from),
                                                    &platform.gpu_host(messages[i].to),
                                                    static_cast<std::uint64_t>(parts));
    });
  }
  clock.join_simgrid(simgrid);
  engine->run();
  return ends;
}

/// Two nodes of two GPUs behind one NIC of 10 GB/s, NVLinks of 25 GB/s.
ClusterSpec one_nic_per_node() {
  NodeSpec node = boxes::full_mesh(
      boxes::node("pair", boxes::gpu("H100", Architecture::hopper, "9.0", 1), 2), 1);
  node.nic_count = 1;
  node.nic_bandwidth = 10_GBps;
  ClusterSpec cluster = boxes::alone(node);
  cluster.node_count = 2;
  return cluster;
}

TEST(RoutingZone, TwoMessagesShareANic) {
  // 1 GB and 0.5 GB leave node 0 together at 5 GB/s each: the short one ends after 100 ms, then the
  // long one has 0.5 GB left at 10 GB/s: 150 ms. NVLink traffic of node 0 is not disturbed: 40 ms.
  const auto ends =
      end_times(one_nic_per_node(), {{0, 2, 1e9, 0_s}, {1, 3, 0.5e9, 0_s}, {0, 1, 1e9, 0_s}});
  EXPECT_NEAR(ends[0], 0.150, kPicosecond);
  EXPECT_NEAR(ends[1], 0.100, kPicosecond);
  EXPECT_NEAR(ends[2], 0.040, kPicosecond);
}

TEST(RoutingZone, OppositeDirectionsOfANicDoNotShare) {
  const auto ends = end_times(one_nic_per_node(), {{0, 2, 1e9, 0_s}, {2, 0, 1e9, 0_s}});
  EXPECT_NEAR(ends[0], 0.100, kPicosecond);
  EXPECT_NEAR(ends[1], 0.100, kPicosecond);
}

/// Nodes 0, 1 and 2 in a row of switches of their own, joined by 10 GB/s and 20 GB/s; NICs of
/// 100 GB/s on every switch.
ClusterSpec two_links_in_a_row() {
  NodeSpec node = boxes::node("lone", boxes::gpu("A100", Architecture::ampere, "8.0", 12), 2);
  node.gpu.pcie_bandwidth = 200_GBps;
  node.nic_count = 2;
  node.nic_bandwidth = 100_GBps;
  ClusterSpec cluster = boxes::alone(node);
  cluster.node_count = 3;
  cluster.fabric.kind = FabricKind::graph;
  cluster.fabric.switches = {"a", "b", "c"};
  for (int i = 0; i < 3; ++i) {
    const std::string name = "node" + std::to_string(i);
    for (const char* nic : {".nic0", ".nic1"}) {
      const std::string own(1, static_cast<char>('a' + i));
      cluster.fabric.links.push_back({name + nic, own, 100_GBps, 0_s});
    }
  }
  cluster.fabric.links.push_back({"a", "b", 10_GBps, 3_us});
  cluster.fabric.links.push_back({"b", "c", 20_GBps, 9_us});
  return cluster;
}

TEST(RoutingZone, ThreeMessagesOverTwoLinksShareMaxMin) {
  // 0 -> 2 crosses both, 0 -> 1 the first, 1 -> 2 the second: 5, 5 and 15 GB/s. Latencies of the
  // links, though unequal, do not weigh the shares: 200, 200 and 66.667 ms for 1 GB each.
  const auto ends =
      end_times(two_links_in_a_row(), {{0, 4, 1e9, 0_s}, {1, 2, 1e9, 0_s}, {3, 5, 1e9, 0_s}});
  EXPECT_NEAR(ends[0], 0.200, kPicosecond);
  EXPECT_NEAR(ends[1], 0.200, kPicosecond);
  EXPECT_NEAR(ends[2], 1.0 / 15, kPicosecond);
}

TEST(RoutingZone, AMessageThatLeavesMidwayFreesItsShare) {
  // 0 -> 1 and 0 -> 2 share 10 GB/s from 0 on. 0 -> 1 (0.25 GB) is done at 50 ms, when 0 -> 2 has
  // 0.75 GB left; it runs at 10 GB/s until 1 -> 2 joins at 60 ms (0.65 GB left, the second link
  // gives 10 each), so on to 125 ms. 1 -> 2 then has 1 - 0.65 = 0.35 GB left at 20 GB/s: 142.5 ms.
  const auto ends =
      end_times(two_links_in_a_row(), {{0, 4, 1e9, 0_s}, {1, 2, 0.25e9, 0_s}, {3, 5, 1e9, 60_ms}});
  EXPECT_NEAR(ends[1], 0.050, kPicosecond);
  EXPECT_NEAR(ends[0], 0.125, kPicosecond);
  EXPECT_NEAR(ends[2], 0.1425, kPicosecond);
}

TEST(RoutingZone, FlowsThatTheHashPutsOnOneSpineSlowEachOther) {
  // Eight pairs of same-rail GPUs of two units, eight uplinks in all of 25 GB/s each: a message
  // alone on its uplinks takes 40 ms for 1 GB; k on one uplink take 40 k ms at most.
  ClusterSpec cluster = fabrics::rails();
  const Topology topology(cluster);
  std::vector<Message> messages;
  std::map<LinkId, int> users;
  for (int node = 0; node < 4; ++node) {
    messages.push_back({node * 8, (node + 4) * 8, 1e9, 0_s});
    for (const LinkId id : topology.route(node * 8, (node + 4) * 8).links) ++users[id];
  }
  const auto ends = end_times(cluster, messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    int most = 0;
    for (const LinkId id : topology.route(messages[i].from, messages[i].to).links) {
      most = std::max(most, users[id]);
    }
    EXPECT_LE(ends[i], 0.040 * most + kPicosecond);
    EXPECT_GE(ends[i], 0.040 - kPicosecond);
    if (most == 1) {
      EXPECT_NEAR(ends[i], 0.040, kPicosecond);
    }
  }
}

TEST(RoutingZone, UnusedLinksAreNotCreatedForPaths) {
  const auto engine = start_simgrid();
  const Topology topology(one_nic_per_node());
  const std::size_t before = engine->get_link_count();
  const LinkPaths paths(topology.links(), {topology.route(0, 1).links});
  const Platform platform(paths, topology.gpu_count());
  // One NVLink bundle; besides, SimGrid gives every zone a loopback.
  std::size_t of_cluster = 0;
  for (const simgrid::s4u::Link* link : engine->get_all_links()) {
    if (std::string(link->get_cname()).find("node") != std::string::npos) ++of_cluster;
  }
  EXPECT_EQ(of_cluster, 1u);
  EXPECT_LT(engine->get_link_count() - before, topology.links().size());
}

}  // namespace
}  // namespace tessera
