#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "lab/fit/fp32/dataset.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// Timed convolutions that were added to the training data.
struct ConvolutionRows {
  MeasurementFile file;  ///< the added rows refer into it
  std::int64_t rows = 0;
};

/// Adds the training rows of `folder`/fp32_conv.csv to the GPUs of `gpus` (which come from fp32.csv
/// beside it); nothing where there is no such file. Throws InputError for malformed rows, for GPUs
/// that the model must never see, and for GPUs that `gpus` lacks.
std::optional<ConvolutionRows> add_convolutions(const std::filesystem::path& folder,
                                                const GpuLookup& lookup,
                                                std::vector<GpuData>& gpus);

/// Fits the model of convolutions to the conv2d rows of `gpus` and writes it into `weights`, whose
/// GPUs are those of `gpus`, in order, with their other effects in place. Without such rows it
/// leaves convolutions to the rules of TesseraPredictor.
void train_convolutions(const std::vector<const GpuData*>& gpus, PredictorWeights& weights);

}  // namespace tessera
