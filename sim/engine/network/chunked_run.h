#pragma once

#include "sim/engine/clock/sim_clock.h"
#include "sim/engine/network/flow_network.h"
#include "sim/engine/network/transfer.h"

namespace tessera {

/// Runs the hops of `transfer` piece by piece: a hop sends its next piece when the pieces that it
/// waits for have arrived and its own last one has left. Every piece is a flow of its own, so that
/// a disturbed hop delays those that wait for it and not everyone at once. `transfer` must outlive
/// the run; `on_end` runs when the last piece has arrived. Only in maestro.
void start_chunked_run(const Transfer& transfer, FlowNetwork& network, SimClock& clock,
                       Action on_end);

}  // namespace tessera
