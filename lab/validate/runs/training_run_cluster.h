#pragma once

#include <string>
#include <vector>

#include "hw/node.h"
#include "lab/validate/runs/training_runs.h"
#include "sim/config/catalog.h"

namespace tessera {

/// Where a measured run ran.
struct RunCluster {
  std::vector<std::string> settings;  ///< "cluster.node=DGX-A100", ...
  NodeSpec node;                      ///< before the row's NICs
};

/// As far as the row says: the catalog's node with as many such GPUs, else a board as its vendor
/// builds it. Several nodes hang on one non-blocking switch, by NICs that give each GPU the
/// bandwidth of the row, or what the vendor's reference server of the generation has.
RunCluster cluster_of_training_run(const TrainingRun& run, const Catalog& catalog);

}  // namespace tessera
