#pragma once

#include <string>
#include <vector>

#include "workloads/graph/block.h"
#include "workloads/program.h"

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
/// it brought, and what the message behind it takes away.
struct PassBoundary {
  Bytes received;
  Bytes sent;
  bool operator==(const PassBoundary&) const = default;
};

/// Cuts `ops` wherever they communicate, synchronize with the host or change phase, and appends the
/// segments to `segments` under names that start with `name`.
Pass cut_into_segments(const std::vector<GraphOp>& ops, const std::string& name,
                       const PassBoundary& boundary, std::vector<Segment>& segments);

}  // namespace tessera
