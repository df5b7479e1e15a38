#pragma once

#include <string>

#include "lab/validate/error_text.h"
#include "lab/validate/runs/score_training_runs.h"

namespace tessera {

/// Measured against simulated for a person: one line per simulated row (not without `rows`), then
/// errors by group and how many rows were skipped for which reason.
std::string training_run_table(const TrainingRunValidation& validation, bool rows = true,
                               TableWidth width = TableWidth::all_columns);

/// Schema `tessera.training_runs/1`: rows[], summary, memory_summary, groups[].
std::string training_run_json(const TrainingRunValidation& validation);

/// One line per row with measured_s, simulated_s, error_pct and skipped.
std::string training_run_csv(const TrainingRunValidation& validation);

}  // namespace tessera
