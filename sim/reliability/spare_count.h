#pragma once

#include "sim/reliability/failure_model.h"

namespace tessera {

/// Nodes out for repair at a time, where nobody waits for a crew.
struct NodesOut {
  double mean = 0;
  double group = 1;  ///< nodes that go together, weighted by what they add to the mean
};

/// By Little's law, of `nodes` nodes.
NodesOut nodes_out(const FailureModel& failures, int nodes);

/// Spares with which no node is missing for `share` of the time, in (0, 1): the quantile of a
/// Poisson distribution (M/G/infinity has it whatever the distribution of repairs; Palm, 1943).
/// Spares fail like the others. -1: more than there are nodes.
int spares_for(const FailureModel& failures, int nodes, double share);

}  // namespace tessera
