#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hw/node.h"
#include "lab/validate/collectives/collective_runs.h"
#include "lab/validate/collectives/nccl_log.h"
#include "sim/config/catalog.h"
#include "sim/scenario/collective_settings.h"

namespace tessera {

struct CollectiveFitOptions {
  std::optional<CollectiveKind> collective;  ///< of logs that do not name it
  int ranks = 0;  ///< of logs that do not list them; 0: the cluster's GPUs
  int nodes = 0;
  std::optional<Seconds> launch;  ///< that every measurement contains; nothing: found in the sweep
  double octaves = 0;             ///< between knots of the corrections, as fit_group()
};

/// Fits every collective and shape of group in the logs on `cluster`. Throws InputError for a log
/// that does not say enough or names more GPUs than the cluster has.
CollectiveSettings calibrate_on_logs(const std::vector<NcclLog>& logs, const ClusterSpec& cluster,
                                     const CollectiveFitOptions& options);

/// The same from rows in the format of docs/collectives.md, which describe their cluster.
CollectiveSettings calibrate_on_runs(const std::vector<CollectiveRun>& runs, const Catalog& catalog,
                                     const CollectiveFitOptions& options);

/// What was fitted, with residuals, for people.
std::string collective_fit_table(const CollectiveSettings& settings);
std::string collective_fit_json(const CollectiveSettings& settings);

}  // namespace tessera
