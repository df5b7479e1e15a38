#pragma once

#include <string>
#include <vector>

#include "lab/validate/runs/training_row.h"

namespace tessera {

/// What a row says of the recipe in lists and words that no table of columns holds, as settings
/// "path=value": modules that run again or that graphs hold, windows and sinks, sizes of Mamba-2
/// layers, layers per stage. Bad values are reported through the row.
std::vector<std::string> recipe_settings(const TrainingRowReader& row);

}  // namespace tessera
