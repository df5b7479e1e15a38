#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "sim/config/catalog.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// A job on nodes of its own.
struct PlacedJob {
  std::string name;
  std::vector<int> nodes;  ///< of the cluster
  Seconds start;           ///< of its first step
  Scenario scenario;       ///< on the whole cluster, with its ranks on these nodes
};

/// Jobs on one cluster.
struct PlacedJobs {
  std::string name;
  ClusterSpec cluster;
  std::vector<PlacedJob> jobs;
};

/// Reads a file of jobs (docs/howto/share_a_cluster.md has its keys). Throws InputError with every
/// problem as file:line:column: unknown keys, jobs that do not fit on their nodes, or that meet
/// others there.
PlacedJobs read_neighbours(const std::filesystem::path& file, const Catalog& catalog);

}  // namespace tessera
