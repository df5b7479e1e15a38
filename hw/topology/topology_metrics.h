#pragma once

#include "hw/topology/topology.h"

namespace tessera {

/// Figures of a whole topology. Bandwidths are usable ones, one direction.
struct TopologyMetrics {
  /// Largest flow from the lower half of the GPUs to the upper half, by number, over any ways.
  BytesPerSecond bisection;
  /// What the lower half's ways out of their nodes could send, over `bisection`; 1 = non-blocking.
  /// Single nodes: 1.
  double oversubscription = 1;
  BytesPerSecond nvlink_per_gpu;   ///< out of one GPU, all NVLinks; 0 without
  BytesPerSecond network_per_gpu;  ///< a GPU's part of its NIC; 0 without
  BytesPerSecond host_per_gpu;     ///< to host memory, alone
  BytesPerSecond nvme_per_gpu;     ///< from the drives, alone; 0 without
  /// Slowest of all GPUs that send to the GPU half the cluster away at once, where links share
  /// their rate evenly: shows what equal-cost routing makes of the bisection.
  BytesPerSecond shift_rate;
  int diameter = 0;  ///< most links on a route
  Seconds diameter_latency;
  std::int64_t pairs = 0;  ///< of GPUs that the diameter was looked for in
  bool all_pairs = true;   ///< false: a sample, evenly spread
};

TopologyMetrics metrics_of(const Topology& topology);

}  // namespace tessera
