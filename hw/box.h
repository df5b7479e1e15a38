#pragma once

#include "hw/node.h"

namespace tessera {

/// One server with `gpus` of a GPU, wired as its vendor builds such boards, for runs whose server
/// nobody described:
/// - boards with soldered NVLink (`form_factor` sxm and superchip): all links spread over direct
/// pairs up to four GPUs, an NVSwitch above;
/// - cards: the PCIe tree, one root port per GPU, on one socket; copies go through the host where
/// they have no peer-to-peer.
/// Requires gpus >= 1. Throws InputError for several GPUs with links whose `form_factor` does not
/// tell how they are joined.
ClusterSpec box_of(const GpuSpec& gpu, int gpus);

}  // namespace tessera
