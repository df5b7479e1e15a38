#pragma once

#include <string>
#include <vector>

#include "workloads/graph/block.h"
#include "workloads/program/program.h"

namespace tessera {

/// A piece of a pass over a block: a segment of kernels, or the communication between two of them.
struct PassPiece {
  GraphOpKind kind = GraphOpKind::kernel;  ///< kernel (a whole segment), collective or wait
  SegmentId segment;
  Phase phase = Phase::forward;
  OpKind collective = OpKind::all_reduce;
  GroupKind group = GroupKind::tensor;
  Bytes bytes;
  bool host_sync = false;  ///< the host waits for the segment
};

/// A pass over a block, ready to be put into a program.
using Pass = std::vector<PassPiece>;

/// Memory that a pass owes to its neighbours on other pipeline stages: what the message that starts
/// it brought, and what the message behind it takes away or the framework at last drops.
struct PassBoundary {
  Bytes received;
  Bytes sent;
  Bytes dropped;  ///< that forward sent and kept: a backward pass ends with it
  bool operator==(const PassBoundary&) const = default;
};

/// Operators of one pass, and where they come from.
struct PassOps {
  const std::vector<GraphOp>& ops;
  std::string name;                                ///< that the names of segments start with
  std::int32_t block = -1;                         ///< index of the block; -1: of none
  const std::vector<Storage>* storages = nullptr;  ///< of the block
  bool segment_per_call = false;                   ///< of the block: every kernel is a segment
};

/// Cuts `pass` wherever it communicates, synchronizes with the host or changes phase, and appends
/// the segments to `segments`.
Pass cut_into_segments(const PassOps& pass, const PassBoundary& boundary,
                       std::vector<Segment>& segments);

}  // namespace tessera
