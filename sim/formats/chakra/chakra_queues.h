#pragma once

#include <cstddef>
#include <vector>

#include "sim/formats/chakra/chakra_reader.h"
#include "workloads/program/program.h"

namespace tessera {

/// A node of a trace at its place in the in-order queues of a rank.
struct QueuedNode {
  std::size_t node = 0;  ///< in the trace
  StreamKind stream = StreamKind::compute;
  std::vector<std::size_t> waits;  ///< positions in the list of queued nodes, besides stream order
};

/// What a rank submits, in an order in which every node comes behind those that it depends on.
struct ChakraQueues {
  std::vector<QueuedNode> nodes;
  /// Nodes that stand in a queue behind one that the trace does not put before them.
  int added_orders = 0;
};

/// Puts the nodes of a trace, which know only dependencies, into the queues of a GPU. Kernels share
/// the compute stream, in the order of the file as far as dependencies allow; CPU nodes the host's
/// and memory nodes the copy engines'. Communication goes behind what it depends on anyway, so that
/// no order is added while there are streams left. METADATA nodes vanish, dependencies go through
/// them. `waits` lists no node that another one implies. Throws InputError for a cycle.
ChakraQueues queue_nodes(const ChakraTrace& trace);

}  // namespace tessera
