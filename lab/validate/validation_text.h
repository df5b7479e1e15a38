#pragma once

#include <string>

#include "lab/validate/error_text.h"
#include "lab/validate/models/score_models.h"

namespace tessera {

/// Measured against simulated for a person: one line per row, then the errors by group.
std::string validation_table(const ModelValidation& validation,
                             TableWidth width = TableWidth::all_columns);

/// Schema `tessera.validation/1`: rows[], summary, groups[].
std::string validation_json(const ModelValidation& validation);

/// One line per row with measured_ms, simulated_ms, error_pct and skipped.
std::string validation_csv(const ModelValidation& validation);

}  // namespace tessera
