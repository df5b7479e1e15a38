#pragma once

#include <filesystem>

#include "predictor/weights/weights.h"

namespace tessera {

/// Replaces the sections that `trained` holds in the weights file at `path`, or begins one. The
/// others keep their bytes, also those of another version, which load_weights refuses. Throws
/// InputError where the file exists and is no weights file of this schema version.
void update_weights(const PredictorWeights& trained, const std::filesystem::path& path);

/// Throws as update_weights would.
void require_updatable(const std::filesystem::path& path);

}  // namespace tessera
