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
  /// What collectives over several nodes take against `cluster`, by size; empty where NICs are
  /// slowed or nothing is.
  std::vector<SizeCorrection> collectives;
  bool all_reduces_alone = false;  ///< are slower: others take what is described
  Seconds per_rank;  ///< that every collective takes the host for each of its ranks; 0: not seen
};

/// What makes NCCL's all-reduce of 1 GiB over all GPUs of `cluster` as slow as
/// `measurement_of()` says (nccl-tests' bus bandwidth: 2 (n - 1) / n of the bytes over the time),
/// and the all-gather of as many likewise ((n - 1) / n):
///
/// - Links: then the all-gather, which moves half the bytes, takes half the time. NICs are slowed,
///   which every message and collective between nodes finds.
/// - The host: a time that grows with the ranks, not with the bytes, which every collective takes
///   it and a message between two does not. Both calls last as long as the host is busy with them,
///   and transfers run beside (docs/decisions/0048-a-slow-host.md). Seen in an all-gather that
///   takes 0.2 to 1 ms a rank beyond what the call itself does
///   (docs/decisions/0094-what-a-call-takes.md) where the all-reduce is a fifth slower than
///   promised or more; without an all-gather, in an all-reduce below a third of what is promised,
///   at up to 1 ms a rank.
///
/// - The all-reduce alone: then an all-gather takes what the cluster as described says. NCCL's
/// trees
///   may lose what its rings do not (docs/decisions/0117-what-a-ring-pays-for-a-node.md).
///
/// Links take no more of an all-reduce than twice the all-gather. A slow host hides them: messages
/// then find NICs as described, and collectives what such a cluster's jobs reach whose hosts are
/// not slow (docs/decisions/0082-what-a-slow-host-hides.md).
/// Leaves the cluster as it is where nothing was measured, where it is one node, and where it
/// promises less than was measured.
MeasuredFabric measured_fabric(const ClusterSpec& cluster, const CollectiveTuning& tuning);

/// Of the collectives that `fabric` slows, of a group of `ranks` on `nodes` nodes; none where it
/// slows NICs or nothing.
std::vector<GroupCalibration> slower_collectives(const MeasuredFabric& fabric, int ranks,
                                                 int nodes);

/// For calls that are made one after the other, as benchmarks make them: all-reduce, all-gather and
/// reduce-scatter take at least `per_rank` for each rank; of groups whose ranks divide the
/// cluster's GPUs, as many on each node. Empty where no collective is slowed.
std::vector<GroupCalibration> calibrations_of(const MeasuredFabric& fabric,
                                              const CollectiveTuning& tuning);

/// A line that compares both; empty where nothing was measured.
std::string note_on_measured_fabric(const MeasuredFabric& fabric);

}  // namespace tessera
