#pragma once

#include <string>

#include "lab/validate/runs/score_training_runs.h"

namespace tessera {

/// Measured steps beside simulated ones as an HTML file: errors, a scatter plot, every row, groups,
/// sources, ranking, what was skipped.
std::string validation_page(const TrainingRunValidation& validation, const std::string& file,
                            const std::string& tessera_version);

}  // namespace tessera
