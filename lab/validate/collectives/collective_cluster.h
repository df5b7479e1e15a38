#pragma once

#include <map>
#include <string>
#include <vector>

#include "hw/node.h"
#include "hw/topology/topology.h"
#include "lab/validate/collectives/collective_runs.h"
#include "sim/config/catalog.h"

namespace tessera {

/// The cluster that a measured row describes: the catalog's GPU, and a node from the words of its
/// link columns:
/// - `intra_link`: "NVSwitch" or "NVLS" = every NVLink to the switch (as many GPUs in a node as the
///   catalog's node of this GPU has, else 8; 72 of "NVL72"); "mesh" = the NVLinks spread over all
///   pairs; "cube" = DGX-1; "pairwise" = pairs 0-1, 2-3, ... bridged, the rest over PCIe; "no
///   NVLink" or "PCIe" alone = PCIe; nothing = the switch where an SXM module has 8 or fewer GPUs
///   in a node of 8;
/// - `inter_link`: "8x400G InfiniBand" = NICs per node and Gb/s of each; "EFA" and "RoCE" add the
///   latency of those.
/// Throws InputError for a GPU that the catalog lacks, or words that say nothing of this kind.
ClusterSpec cluster_of_run(const CollectiveRun& run, const Catalog& catalog);

/// Networks of the clusters that rows describe, each built once.
class RunTopologies {
 public:
  explicit RunTopologies(const Catalog& catalog) : catalog_(catalog) {}
  /// Throws as cluster_of_run() does.
  const Topology& of(const CollectiveRun& run);

 private:
  const Catalog& catalog_;
  std::map<std::string, Topology> topologies_;
};

/// The GPUs of the cluster that take part: the first of every node.
std::vector<int> ranks_of_run(const CollectiveRun& run, const ClusterSpec& cluster);

}  // namespace tessera
