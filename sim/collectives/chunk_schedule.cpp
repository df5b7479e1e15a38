#include "sim/collectives/chunk_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/collectives/link_loads.h"
#include "sim/collectives/rings/ring_paths.h"

namespace tessera {
namespace {

/// A simulation does some hundred thousand of them per second.
constexpr int kMostPieces = 200'000;

/// Of the time in which a pipeline fills, what its links lose. Chains: between half, where the
/// chain in the other direction shares them, and all of it. Trees: nothing, all leaves begin at
/// once.
constexpr double kLostByChains = 0.75;
constexpr double kLostByTrees = 0;

/// Cuts the bytes of a pipeline whose last move begins `depth` pieces after the first, so small
/// that filling it takes 8 % of the whole time at most, as far as that can be simulated.
void cut_into_pieces(const CollectiveCost& cost, int depth, double lost, ChunkSchedule& schedule) {
  const Seconds moving = cost.solo_time - cost.latency;
  const Seconds most_fill = std::min(cost.solo_time * 0.08, cost.latency + moving * 0.02);
  const double wanted = most_fill > Seconds(0) ? depth * (moving / most_fill) : 1;
  const int most = std::max(1, kMostPieces / static_cast<int>(schedule.moves.size()));
  const int pieces = std::clamp(static_cast<int>(std::ceil(std::min(wanted, 1e6))), 1, most);
  for (ChunkMove& move : schedule.moves) {
    move.bytes /= pieces;
    move.pieces = pieces;
  }
  schedule.fill = moving * (lost * depth / pieces);
}

int exit_of(const DirectedRing& ring, std::size_t i) {
  return ring.via.empty() ? ring.order[i] : ring.via[i];
}

ChunkSchedule rings(const Topology& topology, const RingPaths& paths, const CollectiveCall& call) {
  ChunkSchedule schedule;
  const int steps = ring_steps(call.kind, paths.shape.ranks);
  for (const DirectedRing& ring : directed_rings(topology, paths)) {
    const std::size_t first = schedule.moves.size();
    const std::size_t n = ring.order.size();
    const double piece = static_cast<double>(call.bytes.value()) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      schedule.moves.push_back({.from = ring.order[i],
                                .via = exit_of(ring, i),
                                .to = ring.order[(i + 1) % n],
                                .bytes = piece * ring.share,
                                .pieces = steps,
                                .waits = {{first + (i + n - 1) % n, 1}}});
    }
  }
  return schedule;
}

/// Every ring cut open before its root.
ChunkSchedule broadcast_chains(const Topology& topology, const RingPaths& paths,
                               const CollectiveCall& call, const CollectiveCost& cost, int root) {
  ChunkSchedule schedule;
  for (DirectedRing& ring : directed_rings(topology, paths)) {
    const auto start = std::ranges::find(ring.order, root);
    if (!ring.via.empty()) {
      std::rotate(ring.via.begin(), ring.via.begin() + (start - ring.order.begin()),
                  ring.via.end());
    }
    std::rotate(ring.order.begin(), start, ring.order.end());
    for (std::size_t i = 0; i + 1 < ring.order.size(); ++i) {
      ChunkMove move{.from = ring.order[i],
                     .via = exit_of(ring, i),
                     .to = ring.order[i + 1],
                     .bytes = static_cast<double>(call.bytes.value()) * ring.share};
      if (i > 0) move.waits.push_back({schedule.moves.size() - 1, 0});
      schedule.moves.push_back(std::move(move));
    }
  }
  cut_into_pieces(cost, paths.shape.ranks - 2, kLostByChains, schedule);
  return schedule;
}

/// One tree of GPUs: up to the root, and down again.
class TreeMoves {
 public:
  TreeMoves(double bytes, ChunkSchedule& schedule) : bytes_(bytes), schedule_(schedule) {}

  /// Vertices are numbered as they are added; the bytes cross from GPU `from` of the vertex to GPU
  /// `to` of its parent.
  struct Vertex {
    int parent = -1;  ///< -1: the root
    int from = 0;
    int to = 0;
  };
  void add(const std::vector<Vertex>& vertices) {
    std::vector<std::vector<ChunkWait>> from_children(vertices.size());
    const std::size_t first = schedule_.moves.size();
    // Move 2i goes up from vertex i, move 2i + 1 down to it; those of the root carry nothing.
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      if (vertices[i].parent < 0) continue;
      from_children[static_cast<std::size_t>(vertices[i].parent)].push_back({first + 2 * i, 0});
    }
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const auto& [parent, from, to] = vertices[i];
      const double bytes = parent < 0 ? 0 : bytes_;
      schedule_.moves.push_back({from, from, to, bytes, 1, from_children[i]});
      const std::size_t above = parent < 0 ? first + 2 * i : first + 2 * as_index(parent) + 1;
      schedule_.moves.push_back({to, to, from, bytes, 1, {{above, 0}}});
    }
  }

 private:
  static std::size_t as_index(int number) { return static_cast<std::size_t>(number); }

  double bytes_;
  ChunkSchedule& schedule_;
};

bool nodes_are_alike(const std::vector<NodeGroup>& nodes) {
  return std::ranges::all_of(nodes, [&](const NodeGroup& node) {
    return node.gpus.size() == nodes.front().gpus.size() &&
           node.rings.size() == nodes.front().rings.size();
  });
}

/// The chains of the nodes, cut before GPU `cut` of ring `ring`, under a binary tree of nodes.
std::vector<TreeMoves::Vertex> tree_over(const std::vector<NodeGroup>& nodes,
                                         const std::vector<int>& parents, std::size_t ring,
                                         std::size_t cut, const std::vector<int>& rail) {
  std::vector<TreeMoves::Vertex> vertices;
  const std::size_t n = nodes.front().gpus.size();
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const std::vector<int>& order = n > 1 ? nodes[node].rings[ring] : nodes[node].gpus;
    const int up = parents[node];
    const int top = up < 0 ? -1 : up * static_cast<int>(n);
    const int owner = rail.empty() ? order[cut] : rail[node];
    vertices.push_back({top, owner, up < 0 ? owner : rail[static_cast<std::size_t>(up)]});
    for (std::size_t i = 1; i < n; ++i) {
      vertices.push_back(
          {static_cast<int>(node * n + i) - 1, order[(cut + i) % n], order[(cut + i - 1) % n]});
    }
  }
  return vertices;
}

int depth_of(const std::vector<int>& parents) {
  int deepest = 0;
  for (std::size_t node = 0; node < parents.size(); ++node) {
    int depth = 0;
    for (int up = parents[node]; up >= 0; up = parents[static_cast<std::size_t>(up)]) ++depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

std::optional<ChunkSchedule> trees(const Topology& topology, const RingPaths& paths,
                                   const CollectiveCall& call, const CollectiveCost& cost) {
  const std::vector<NodeGroup>& nodes = paths.nodes;
  if (!nodes_are_alike(nodes)) return std::nullopt;
  const std::size_t n = nodes.front().gpus.size();
  const std::size_t ring_count = std::max<std::size_t>(1, nodes.front().rings.size());
  const bool several = nodes.size() > 1;
  const auto rails = several ? rail_owners(topology, nodes) : std::vector<std::vector<int>>();
  const double share = static_cast<double>(n * ring_count * (several ? 2 : 1));
  ChunkSchedule schedule;
  TreeMoves moves(static_cast<double>(call.bytes.value()) / share, schedule);
  int depth = 0;
  for (const bool second : {false, true}) {
    if (second && !several) continue;
    const std::vector<int> parents = tree_parents(static_cast<int>(nodes.size()), second);
    depth = std::max(depth, depth_of(parents));
    for (std::size_t ring = 0; ring < ring_count; ++ring) {
      for (std::size_t cut = 0; cut < n; ++cut) {
        const std::vector<int> rail = several ? rails[cut % rails.size()] : std::vector<int>();
        moves.add(tree_over(nodes, parents, ring, cut, rail));
      }
    }
  }
  cut_into_pieces(cost, 2 * (static_cast<int>(n) - 1 + depth) - 1, kLostByTrees, schedule);
  return schedule;
}

ChunkSchedule pairs(const CollectiveCall& call, std::span<const int> ranks) {
  ChunkSchedule schedule;
  const double bytes = static_cast<double>(call.bytes.value()) / static_cast<double>(ranks.size());
  for (const int from : ranks) {
    for (const int to : ranks) {
      if (from != to)
        schedule.moves.push_back({.from = from, .via = from, .to = to, .bytes = bytes});
    }
  }
  return schedule;
}

}  // namespace

std::vector<LinkId> links_of(const Topology& topology, const ChunkMove& move) {
  std::vector<LinkId> links = topology.route(move.via, move.to).links;
  if (move.via == move.from) return links;
  const std::vector<LinkId> before = topology.route(move.from, move.via).links;
  links.insert(links.begin(), before.begin(), before.end());
  return links;
}

std::optional<ChunkSchedule> chunk_schedule(const Topology& topology, const CollectiveCall& call,
                                            const CollectiveCost& cost,
                                            std::span<const int> ranks) {
  if (call.kind == CollectiveKind::send_recv) return std::nullopt;
  switch (cost.algorithm) {
    case CollectiveAlgorithm::ring: {
      const RingPaths paths = ring_paths(topology, ranks);
      if (call.kind != CollectiveKind::broadcast) return rings(topology, paths, call);
      return broadcast_chains(topology, paths, call, cost, ranks.front());
    }
    case CollectiveAlgorithm::tree:
      return trees(topology, ring_paths(topology, ranks), call, cost);
    case CollectiveAlgorithm::pairwise:
      return pairs(call, ranks);
    default:
      return std::nullopt;
  }
}

}  // namespace tessera
