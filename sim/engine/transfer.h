#pragma once

#include <vector>

#include "hw/units/quantity.h"
#include "sim/engine/device_load.h"
#include "sim/engine/platform.h"

namespace tessera {

/// A ring whose members pass pieces of `bytes` on, hop by hop.
struct ChunkRing {
  std::vector<PathId> hops;  ///< from every member to the next
  double bytes = 0;          ///< of one piece
};

/// What one collective or message costs: `delay`, then a flow of `bytes` over `path`, or `steps`
/// rounds of pieces along every ring.
struct Transfer {
  Seconds delay;
  double bytes = 0;  ///< over each link of the path
  PathId path;       ///< not valid: no flow, the delay is everything
  std::vector<ChunkRing> rings = {};
  int steps = 0;         ///< 0: no rings
  DeviceLoad load = {};  ///< on each of the GPUs that take part
};

}  // namespace tessera
