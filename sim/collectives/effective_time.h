#pragma once

#include "sim/collectives/collective_constants.h"
#include "sim/collectives/nccl_choice.h"

namespace tessera {

/// The parts of a collective's time alone.
struct TimeParts {
  Seconds latency;   ///< launch and steps
  Seconds transfer;  ///< bytes on the limiting link at the rate that the protocol reaches
  Seconds fill;      ///< until the pipeline of chunks is full
};

/// Time of `call` run as `choice` on a group. `on_links` is the time in which the bytes cross the
/// link that limits them. See docs/decisions/0011-collectives.md for every term.
TimeParts effective_time(const RingShape& shape, const CollectiveCall& call,
                         const NcclExpectation& choice, Seconds on_links,
                         const CollectiveConstants& constants);

}  // namespace tessera
