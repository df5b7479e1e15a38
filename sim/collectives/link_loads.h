#pragma once

#include <span>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/collectives/link_sums.h"
#include "sim/collectives/rings/ring_paths.h"

namespace tessera {

/// Bytes per link, added up route by route.
class LinkBytes {
 public:
  void add(const Route& route, double bytes) { sums_.add(route, bytes); }
  void add(std::span<const LinkShare> shares, double bytes) {
    for (const LinkShare& share : shares) sums_.add(share.link, share.share * bytes);
  }
  /// Ascending by link.
  std::vector<LinkLoad> list() { return sums_.list<LinkLoad>(); }

 private:
  LinkSums sums_;
};

/// The bytes that each link carries for a collective of `call.bytes` with `algorithm`, for at least
/// two ranks:
/// - ring: every rank sends steps/n of the buffer along each ring's share;
/// - tree: chains inside the nodes carry the buffer up and down, each half of it goes over one of
///   two binary trees of nodes, spread over the rails;
/// - nvls: every GPU sends its buffer to the switch and a share of the result, and receives the
///   same; nvls_tree adds the trees between nodes;
/// - collnet: the rails send the buffer to the network and receive the result;
/// - pat: as the ring, to the partners at distance 1, 2, 4, ...;
/// - pairwise: every pair's piece over the route between them;
/// - hierarchical: reduce-scatter in the nodes, rings over the rails, all-gather in the nodes.
std::vector<LinkLoad> link_loads(const Topology& topology, const RingPaths& paths,
                                 CollectiveAlgorithm algorithm, const CollectiveCall& call,
                                 std::span<const int> ranks);

/// Node -> parent in one of NCCL's two binary trees (ncclGetDtree); -1 for the root.
std::vector<int> tree_parents(int nodes, bool second_tree);

}  // namespace tessera
