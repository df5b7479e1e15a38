#pragma once

#include <filesystem>

#include "hw/gpu_lookup.h"
#include "predictor/weights/weights.h"
#include "sim/config/catalog.h"

namespace tessera {

/// The folder that holds configs/, predictor/weights/ and results/: $TESSERA_HOME, else
/// share/tessera beside the folder of the program, which in a build is a link to the checkout.
std::filesystem::path home();

/// Whether that is a checkout, whose files may be made anew; an installation's stay as they came.
bool is_checkout();

/// The shipped descriptions. Throws InputError with the remedy where home() does not hold them.
Catalog shipped_catalog();

/// Finds a GPU of the shipped catalog by its id.
GpuLookup shipped_gpu_lookup();

/// The trained weights that come with the repository.
std::filesystem::path weights_file();

/// Throws InputError where home() is none, or the file is missing or damaged.
PredictorWeights shipped_weights();

}  // namespace tessera
