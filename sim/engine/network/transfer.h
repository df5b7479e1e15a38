#pragma once

#include <vector>

#include "hw/units/quantity.h"
#include "sim/collectives/chunk_schedule.h"
#include "sim/engine/network/link_paths.h"
#include "sim/plan/device_load.h"

namespace tessera {

/// A ChunkMove over a path.
struct ChunkHop {
  PathId path;       ///< not valid: nothing moves, it only joins what it waits for
  double bytes = 0;  ///< of one piece
  int pieces = 1;
  std::vector<ChunkWait> waits = {};
};

/// What one collective or message costs: `delay`, then its bytes move: a flow of `bytes` over
/// `path`, or pieces over `hops`, or just `moving` where nobody else can be on its links.
struct Transfer {
  Seconds delay;
  Seconds moving = {};
  double bytes = 0;          ///< over each link of the path
  PathId path = {};          ///< not valid: no flow
  BytesPerSecond rate = {};  ///< of the flow when nobody else is on its links
  std::vector<ChunkHop> hops = {};
  DeviceLoad load = {};  ///< on each of the GPUs that take part

  bool is_closed_form() const { return hops.empty() && !path.valid(); }
};

}  // namespace tessera
