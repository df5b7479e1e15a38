#pragma once

#include <vector>

#include "sim/engine/folding/folding.h"

namespace tessera {

/// For every fold that the settings allow and that is not complete: what tells two ranks apart.
/// `graph` has the final colors, `transfers` are as they were before any fold.
std::vector<FoldRefusal> fold_refusals(const TimedProgram& timed, const NodeOrbits& orbits,
                                       const Communicators& communicators,
                                       const std::vector<PlannedTransfer>& transfers,
                                       const SymmetryGraph& graph);

}  // namespace tessera
