#include "sim/collectives/link_loads.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "sim/collectives/collective_tuning.h"
#include "tests/hw/boxes.h"

namespace tessera {
namespace {

using Algorithm = CollectiveAlgorithm;
using Kind = CollectiveKind;

ClusterSpec several(const NodeSpec& node, int count) {
  ClusterSpec cluster = boxes::alone(node);
  cluster.node_count = count;
  return cluster;
}

NodeSpec h100_switch() {
  NodeSpec node = boxes::node("DGX-H100", boxes::gpu("H100", Architecture::hopper, "9.0", 18), 8);
  node.interconnect = GpuInterconnect::nvswitch;
  node.nvlink_efficiency = boxes::kHopperEfficiency;
  node.nic_count = 8;
  node.nic_bandwidth = 50_GBps;
  node.nic_latency = 1_us;
  return node;
}

std::vector<ClusterSpec> clusters() {
  return {boxes::alone(boxes::h100_mesh()), boxes::alone(boxes::v100_cube_mesh()),
          boxes::alone(boxes::pcie_box()), several(boxes::a100_switch(), 3),
          several(h100_switch(), 4)};
}

/// At least two GPUs of the cluster in random order.
std::vector<int> random_group(int gpus, std::mt19937& random) {
  std::vector<int> all(static_cast<std::size_t>(gpus));
  std::iota(all.begin(), all.end(), 0);
  std::ranges::shuffle(all, random);
  all.resize(2 + random() % static_cast<std::size_t>(gpus - 1));
  return all;
}

/// Bytes that the links into (or out of) single GPUs carry, NVLink alone.
double port_bytes(const Topology& topology, const std::vector<LinkLoad>& loads, bool sent) {
  double bytes = 0;
  for (const LinkLoad& load : loads) {
    const std::string& name = topology.link(load.link).name;
    const bool to_switch = name.ends_with("->nvswitch");
    const bool from_switch = name.find("/nvswitch->") != std::string::npos;
    if (sent ? to_switch : from_switch) bytes += load.bytes;
  }
  return bytes;
}

std::vector<LinkLoad> loads_of(const Topology& topology, Algorithm algorithm, Kind kind,
                               double bytes, const std::vector<int>& ranks) {
  const CollectiveCall call{.kind = kind, .bytes = Bytes(static_cast<std::int64_t>(bytes))};
  return link_loads(topology, ring_paths(topology, ranks), algorithm, call, ranks);
}

std::vector<int> first_gpus(int count) {
  std::vector<int> gpus(static_cast<std::size_t>(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

TEST(LinkLoads, EveryRankOfARingSendsAndReceivesItsStepsOfPieces) {
  const Topology topology(boxes::alone(h100_switch()));
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const std::vector<int> ranks = random_group(8, random);
    const double n = static_cast<double>(ranks.size());
    const double bytes = 1 + static_cast<double>(random() % 1'000'000'000);
    const auto all_reduce = loads_of(topology, Algorithm::ring, Kind::all_reduce, bytes, ranks);
    EXPECT_NEAR(port_bytes(topology, all_reduce, true) / bytes, 2 * (n - 1), 1e-6);
    EXPECT_NEAR(port_bytes(topology, all_reduce, false) / bytes, 2 * (n - 1), 1e-6);
    const auto gather = loads_of(topology, Algorithm::ring, Kind::all_gather, bytes, ranks);
    EXPECT_NEAR(port_bytes(topology, gather, true) / bytes, n - 1, 1e-6);
    const auto scatter = loads_of(topology, Algorithm::ring, Kind::reduce_scatter, bytes, ranks);
    EXPECT_NEAR(port_bytes(topology, scatter, false) / bytes, n - 1, 1e-6);
    const auto broadcast = loads_of(topology, Algorithm::ring, Kind::broadcast, bytes, ranks);
    EXPECT_NEAR(port_bytes(topology, broadcast, false) / bytes, n, 1e-6);  // the whole ring
    const auto pairs = loads_of(topology, Algorithm::pairwise, Kind::all_to_all, bytes, ranks);
    EXPECT_NEAR(port_bytes(topology, pairs, true) / bytes, n - 1, 1e-6);
    const auto tree = loads_of(topology, Algorithm::tree, Kind::all_reduce, bytes, ranks);
    // n - 1 edges, up and down
    EXPECT_NEAR(port_bytes(topology, tree, true) / bytes, 2 * (n - 1), 1e-6);
    const auto nvls = loads_of(topology, Algorithm::nvls, Kind::all_reduce, bytes, ranks);
    // every GPU its buffer and its part of the result
    EXPECT_NEAR(port_bytes(topology, nvls, true) / bytes, n + 1, 1e-6);
  }
}

/// Bytes into all network cards, from the fabric.
double received_from_network(const Topology& topology, const std::vector<LinkLoad>& loads) {
  double bytes = 0;
  for (const LinkLoad& load : loads) {
    const Link& link = topology.link(load.link);
    if (link.technology == LinkTechnology::nic && link.name.find("/fabric->") != std::string::npos)
      bytes += load.bytes;
  }
  return bytes;
}

TEST(LinkLoads, TheNetworkCarriesWhatTheAlgorithmSendsBetweenNodes) {
  for (const int nodes : {2, 3, 4, 7}) {
    const Topology topology(several(h100_switch(), nodes));
    const std::vector<int> ranks = first_gpus(8 * nodes);
    const double n = 8.0 * nodes;
    const double bytes = 1 << 20;
    const auto per_buffer = [&](Algorithm algorithm, Kind kind) {
      return received_from_network(topology, loads_of(topology, algorithm, kind, bytes, ranks)) /
             bytes;
    };
    // A ring enters every node once with all its traffic.
    EXPECT_NEAR(per_buffer(Algorithm::ring, Kind::all_reduce), nodes * 2 * (n - 1) / n, 1e-6);
    // A tree of nodes has one edge less than nodes, used up and down.
    EXPECT_NEAR(per_buffer(Algorithm::tree, Kind::all_reduce), 2 * (nodes - 1), 1e-6);
    EXPECT_NEAR(per_buffer(Algorithm::nvls_tree, Kind::all_reduce), 2 * (nodes - 1), 1e-6);
    // Switches that reduce send every node the result once.
    EXPECT_NEAR(per_buffer(Algorithm::collnet_direct, Kind::all_reduce), nodes, 1e-6);
    // Every GPU gets from the n - 8 of the other nodes a piece of 1/n.
    EXPECT_NEAR(per_buffer(Algorithm::pairwise, Kind::all_to_all), n * (n - 8) / n, 1e-6);
    EXPECT_NEAR(per_buffer(Algorithm::hierarchical, Kind::all_reduce), 2.0 * (nodes - 1), 1e-6);
  }
}

TEST(LinkLoads, PatMovesWhatTheRingMoves) {
  for (const int nodes : {2, 3, 8, 13}) {
    NodeSpec node = h100_switch();
    const Topology topology(several(node, nodes));
    std::vector<int> ranks;
    for (int i = 0; i < nodes; ++i) ranks.push_back(8 * i);
    const double bytes = 1 << 20;
    const auto pat = loads_of(topology, Algorithm::pat, Kind::all_gather, bytes, ranks);
    EXPECT_NEAR(received_from_network(topology, pat) / bytes, nodes - 1, 1e-6);
  }
}

TEST(LinkLoads, BothTreesReachEveryNodeFromOneRoot) {
  for (int nodes = 2; nodes < 40; ++nodes) {
    for (const bool second : {false, true}) {
      const std::vector<int> parents = tree_parents(nodes, second);
      EXPECT_EQ(std::ranges::count(parents, -1), 1) << nodes;
      for (int node = 0; node < nodes; ++node) {
        int at = node;
        for (int hops = 0; hops <= nodes && at >= 0; ++hops)
          at = parents[static_cast<std::size_t>(at)];
        EXPECT_EQ(at, -1) << node << " of " << nodes;
      }
    }
  }
}

TEST(LinkLoads, NoNodeIsInsideBothTrees) {
  for (const int nodes : {4, 8, 16, 5, 9}) {
    std::vector<int> inside(static_cast<std::size_t>(nodes));
    for (const bool second : {false, true}) {
      std::vector<int> children(static_cast<std::size_t>(nodes));
      for (const int parent : tree_parents(nodes, second)) {
        if (parent >= 0) ++children[static_cast<std::size_t>(parent)];
      }
      for (std::size_t node = 0; node < children.size(); ++node)
        inside[node] += children[node] > 1 ? 1 : 0;
    }
    EXPECT_LE(*std::ranges::max_element(inside), 1) << nodes;
  }
}

TEST(CollectiveCost, NeverBeatsTheTimeOfItsBytesOnAnyLink) {
  std::mt19937 random(11);
  for (const ClusterSpec& cluster : clusters()) {
    const Topology topology(cluster);
    for (int round = 0; round < 40; ++round) {
      const std::vector<int> ranks = random_group(topology.gpu_count(), random);
      const Bytes bytes(1 + static_cast<std::int64_t>(random() % 4'000'000'000));
      for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter,
                              Kind::broadcast, Kind::all_to_all, Kind::send_recv}) {
        const CollectiveCost cost = collective_cost(topology, kind, bytes, ranks);
        for (const LinkLoad& load : cost.loads) {
          const double busy = load.bytes / topology.link(load.link).bandwidth.value();
          ASSERT_GE(cost.solo_time.value(), busy * (1 - 1e-12));
        }
        ASSERT_LE(cost.protocol_share, 1 + 1e-12);
        ASSERT_GE(cost.solo_time, cost.lower_bound);
      }
    }
  }
}

TEST(AllToAll, EvenMatrixIsTheEvenCollective) {
  const Topology topology(several(h100_switch(), 2));
  const std::vector<int> ranks = first_gpus(16);
  const std::vector<Bytes> sent(16 * 16, 1_MiB);
  const CollectiveCost uneven = all_to_all_cost(topology, sent, ranks, CollectiveTuning());
  const CollectiveCost even = collective_cost(topology, Kind::all_to_all, 16_MiB, ranks);
  EXPECT_EQ(uneven.solo_time, even.solo_time);
}

TEST(AllToAll, TheBusiestRankSetsThePace) {
  const Topology topology(boxes::alone(h100_switch()));
  const std::vector<int> ranks = first_gpus(4);
  std::vector<Bytes> sent(16, 1_MiB);
  for (int to = 1; to < 4; ++to) sent[static_cast<std::size_t>(to)] = 64_MiB;  // rank 0 sends
  const CollectiveCost cost = all_to_all_cost(topology, sent, ranks, CollectiveTuning());
  EXPECT_EQ(topology.link(cost.bottleneck).name, "node0/gpu0->nvswitch");
  EXPECT_NEAR(cost.lower_bound.value(), 3 * 64.0 * 1024 * 1024 / 370.8e9, 1e-9);
}

}  // namespace
}  // namespace tessera
