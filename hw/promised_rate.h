#pragma once

#include "hw/link.h"
#include "hw/node.h"

namespace tessera {

/// What the data sheet promises of `link` of `cluster`: its line rate. Link::bandwidth is the part
/// of it that transfers were measured to reach (the efficiencies of node and fabric); where a
/// description gives the usable rate alone, that.
BytesPerSecond promised_rate(const Link& link, const ClusterSpec& cluster);

}  // namespace tessera
