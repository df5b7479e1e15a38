#pragma once

#include <string>

#include "lab/validate/collectives/score_collectives.h"

namespace tessera {

/// Errors by group, and the rows that were skipped.
std::string collective_table(const CollectiveValidation& validation);
/// {"basis", "rows": every input column, predicted_us, error_pct, skipped, calibrated, algorithm,
/// protocol; "summary", "groups"}
std::string collective_json(const CollectiveValidation& validation);
/// The rows with predicted_us, error_pct and skipped behind their columns.
std::string collective_csv(const CollectiveValidation& validation);

}  // namespace tessera
