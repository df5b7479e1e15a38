#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sim/collectives/collective.h"

namespace tessera {

/// Piece k of a move starts when move `move` has delivered its piece k - `lag`.
struct ChunkWait {
  std::size_t move = 0;
  int lag = 0;
};

/// Pieces that one GPU (of the topology) sends to another, one after the other.
struct ChunkMove {
  int from = 0;
  int via = 0;  ///< GPU over which the bytes go; `from` where they go straight
  int to = 0;
  double bytes = 0;  ///< of a piece
  int pieces = 1;
  std::vector<ChunkWait> waits = {};
};

/// The links that it crosses.
std::vector<LinkId> links_of(const Topology& topology, const ChunkMove& move);

/// A collective piece by piece.
struct ChunkSchedule {
  std::vector<ChunkMove> moves;
  Seconds fill;  ///< until the last move begins, when nothing else is on the links: part of what
                 ///< CollectiveCost::latency counts as steps
};

/// Who sends what to whom, and after what, for at least two `ranks`; `cost` is that of `call`:
/// - ring: each of the rings passes n pieces on, all_reduce twice round, reduce_scatter and
///   all_gather once; broadcast: pieces small enough for the pipeline to fill fast;
/// - tree: pieces go up the chains and the double binary tree and down again;
/// - pairwise: every pair's bytes at once.
/// Nothing for the other algorithms, for send_recv, and for trees over nodes that differ.
std::optional<ChunkSchedule> chunk_schedule(const Topology& topology, const CollectiveCall& call,
                                            const CollectiveCost& cost, std::span<const int> ranks);

}  // namespace tessera
