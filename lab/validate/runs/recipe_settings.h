#pragma once

#include <string>
#include <vector>

#include "lab/validate/runs/training_row.h"

namespace tessera {

/// What a row says of the recipe, as settings "path=value": the dispatcher and overlap of experts,
/// what runs again or waits in host memory, what graphs hold, windows and sinks, adapters, layers
/// per stage. Bad values are reported through the row.
std::vector<std::string> recipe_settings(const TrainingRowReader& row);

/// Numbers of layers per model chunk of a layout in letters, "E embedding, t layer, m MTP, L head,
/// | next chunk, *n repeated": "[3, 4, 1]"; empty where it cannot be read.
std::string layers_of_letters(const std::string& letters);

}  // namespace tessera
