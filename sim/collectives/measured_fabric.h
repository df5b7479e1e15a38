#pragma once

#include <string>

#include "hw/node.h"
#include "sim/collectives/collective_tuning.h"

namespace tessera {

/// A cluster whose nodes reach each other as fast as was measured.
struct MeasuredFabric {
  ClusterSpec cluster;      ///< with slower NICs where the measurement asks for that
  BytesPerSecond promised;  ///< bus bandwidth of the same all-reduce over the cluster as described
  double nic_share = 1;     ///< of the NICs' rate that is left, in (0, 1]
};

/// Slows the NICs of `cluster` until NCCL's all-reduce of 1 GiB over all its GPUs has the bus
/// bandwidth `ClusterSpec::measured_all_reduce` (nccl-tests: 2 (n - 1) / n of the bytes over the
/// time). Leaves it as it is where nothing was measured, where the cluster is one node, and where
/// it promises less than was measured. Every message and collective between nodes then finds such
/// NICs: what smaller groups would have reached is not known.
MeasuredFabric measured_fabric(const ClusterSpec& cluster, const CollectiveTuning& tuning);

/// A line that compares both, where something was measured.
std::string note_on_measured_fabric(const MeasuredFabric& fabric);

}  // namespace tessera
