#pragma once

#include "sim/engine/communication_plan.h"
#include "sim/engine/flow_network.h"
#include "sim/engine/sim_clock.h"

namespace tessera {

/// Runs the rings of `transfer` piece by piece: a member passes its piece of a step on when it has
/// received the piece of the step before and its own last one has left. Every piece is a flow of
/// its own, so that a disturbed hop delays its neighbours and not the whole ring at once.
/// `transfer` must outlive the run; `on_end` runs when the last piece has arrived. Only in maestro.
void start_chunked_rings(const Transfer& transfer, FlowNetwork& network, SimClock& clock,
                         Action on_end);

}  // namespace tessera
