#pragma once

#include <filesystem>

#include "predictor/weights/weights.h"

namespace tessera {

namespace weights {
class Fp32;
}

/// The section of FP32 kernels in a weights file. `path` is named in errors: read_fp32 throws
/// InputError for damaged sections and those of another schema or feature version.
void write_fp32(const PredictorWeights& from, weights::Fp32& to);
void read_fp32(const weights::Fp32& from, const std::filesystem::path& path, PredictorWeights& to);

}  // namespace tessera
