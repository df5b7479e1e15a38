#pragma once

#include <string>
#include <vector>

#include "hw/node.h"
#include "sim/collectives/collective_tuning.h"

namespace tessera {

/// A cluster whose nodes reach each other as fast as was measured.
struct MeasuredFabric {
  ClusterSpec cluster;      ///< with slower NICs where the measurement asks for that
  BytesPerSecond promised;  ///< bus bandwidth of the same all-reduce over the cluster as described
  double nic_share = 1;     ///< of the NICs' rate that is left, in (0, 1]
  Seconds per_rank;  ///< that every collective takes longer for each of its ranks; 0: the NICs are
                     ///< what is slow
};

/// What makes NCCL's all-reduce of 1 GiB over all GPUs of `cluster` as slow as
/// `ClusterSpec::measured_all_reduce` says (nccl-tests' bus bandwidth: 2 (n - 1) / n of the bytes
/// over the time). Down to a third of what the cluster promises, its NICs: every message and
/// collective between nodes finds slower ones. Below, each rank of a group: a time that grows with
/// the ranks, not with the bytes, which every collective has and a message between two has not
/// (docs/decisions/0043-a-slow-all-reduce.md); but NICs again where that would be more than a millisecond
/// a rank. Leaves the cluster as it is where nothing was measured, where it is one
/// node, and where it promises less than was measured.
MeasuredFabric measured_fabric(const ClusterSpec& cluster, const CollectiveTuning& tuning);

/// `per_rank` as calibrations of all-reduce, all-gather and reduce-scatter: of groups whose ranks
/// divide the cluster's GPUs, as many on each node. Empty without it.
std::vector<GroupCalibration> calibrations_of(const MeasuredFabric& fabric,
                                              const CollectiveTuning& tuning);

/// A line that compares both, where something was measured.
std::string note_on_measured_fabric(const MeasuredFabric& fabric);

}  // namespace tessera
