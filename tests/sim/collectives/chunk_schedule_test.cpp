// Schedules of pieces against the formulas of link_loads(), which know no pieces.
#include "sim/collectives/chunk_schedule.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

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

struct Scheduled {
  Topology topology;
  std::vector<int> ranks;
  CollectiveCall call;
  CollectiveCost cost;
  ChunkSchedule schedule;
};

/// Over all GPUs.
Scheduled scheduled(const ClusterSpec& cluster, Kind kind, Algorithm algorithm) {
  Scheduled made{Topology(cluster), {}, {.kind = kind, .bytes = 64_MiB}, {}, {}};
  made.ranks.resize(static_cast<std::size_t>(cluster.gpu_count()));
  std::iota(made.ranks.begin(), made.ranks.end(), 0);
  if (algorithm != Algorithm::pairwise) made.call.algorithm = algorithm;
  made.cost = collective_cost(made.topology, made.call, made.ranks);
  EXPECT_EQ(made.cost.algorithm, algorithm);
  made.schedule = chunk_schedule(made.topology, made.call, made.cost, made.ranks).value();
  return made;
}

std::map<LinkId, double> bytes_by_link(const Scheduled& made) {
  std::map<LinkId, double> bytes;
  for (const ChunkMove& move : made.schedule.moves) {
    if (move.bytes <= 0) continue;
    for (const LinkId link : links_of(made.topology, move)) bytes[link] += move.bytes * move.pieces;
  }
  return bytes;
}

/// Pieces that arrive when each starts as soon as its waits allow: all, unless some wait in a ring.
bool ends(const ChunkSchedule& schedule) {
  std::vector<int> done(schedule.moves.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t i = 0; i < done.size(); ++i) {
      const ChunkMove& move = schedule.moves[i];
      const auto ready = [&](const ChunkWait& wait) {
        return done[wait.move] >= done[i] + 1 - wait.lag;
      };
      if (done[i] == move.pieces || !std::ranges::all_of(move.waits, ready)) continue;
      ++done[i];
      progress = true;
    }
  }
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (done[i] != schedule.moves[i].pieces) return false;
  }
  return true;
}

struct Case {
  Kind kind;
  Algorithm algorithm;
};
constexpr Case kCases[] = {{Kind::all_reduce, Algorithm::ring},
                           {Kind::reduce_scatter, Algorithm::ring},
                           {Kind::all_gather, Algorithm::ring},
                           {Kind::all_reduce, Algorithm::tree},
                           {Kind::all_to_all, Algorithm::pairwise}};

NodeSpec mesh_with_nics() {
  NodeSpec node = boxes::h100_mesh();
  node.nic_count = 4;
  node.nic_bandwidth = 50_GBps;
  node.nic_latency = 1_us;
  return node;
}

std::vector<ClusterSpec> clusters() {
  return {boxes::alone(boxes::h100_mesh()), boxes::alone(boxes::v100_cube_mesh()),
          boxes::alone(boxes::pcie_box()),  boxes::alone(boxes::a100_switch()),
          several(boxes::a100_switch(), 3), several(mesh_with_nics(), 4)};
}

TEST(ChunkSchedule, LinksCarryTheBytesOfTheFormula) {
  for (const ClusterSpec& cluster : clusters()) {
    for (const auto& [kind, algorithm] : kCases) {
      const Scheduled made = scheduled(cluster, kind, algorithm);
      const std::map<LinkId, double> bytes = bytes_by_link(made);
      EXPECT_EQ(bytes.size(), made.cost.loads.size()) << cluster.id << " x" << cluster.node_count;
      for (const LinkLoad& load : made.cost.loads) {
        const auto found = bytes.find(load.link);
        EXPECT_NEAR(found == bytes.end() ? 0 : found->second / load.bytes, 1, 1e-9)
            << cluster.id << " x" << cluster.node_count << " " << made.topology.link(load.link).name
            << " " << static_cast<int>(kind) << " " << static_cast<int>(algorithm);
      }
    }
  }
}

TEST(ChunkSchedule, NobodyWaitsForever) {
  for (const ClusterSpec& cluster : clusters()) {
    for (const auto& [kind, algorithm] : kCases) {
      EXPECT_TRUE(ends(scheduled(cluster, kind, algorithm).schedule)) << cluster.id;
    }
    EXPECT_TRUE(ends(scheduled(cluster, Kind::broadcast, Algorithm::ring).schedule));
  }
}

TEST(ChunkSchedule, ABroadcastReachesEveryoneOnceFromItsRoot) {
  for (const ClusterSpec& cluster : clusters()) {
    const Scheduled made = scheduled(cluster, Kind::broadcast, Algorithm::ring);
    std::map<int, double> received;
    for (const ChunkMove& move : made.schedule.moves) {
      received[move.to] += move.bytes * move.pieces;
    }
    EXPECT_EQ(received.size(), made.ranks.size() - 1);
    EXPECT_FALSE(received.contains(made.ranks.front()));
    for (const auto& [gpu, bytes] : received) {
      EXPECT_NEAR(bytes / static_cast<double>(made.call.bytes.value()), 1, 1e-9) << gpu;
    }
  }
}

TEST(ChunkSchedule, SwitchesThatReduceHaveNone) {
  const Topology topology(boxes::alone(boxes::h100_mesh()));
  const CollectiveCall call{.kind = Kind::all_reduce, .bytes = 1_MiB};
  CollectiveCost cost;
  cost.algorithm = Algorithm::nvls;
  const int ranks[] = {0, 1};
  EXPECT_FALSE(chunk_schedule(topology, call, cost, ranks).has_value());
}

}  // namespace
}  // namespace tessera
