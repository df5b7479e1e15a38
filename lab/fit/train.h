#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lab/fit/fp32/conv_training.h"
#include "lab/fit/fp32/dataset.h"
#include "lab/fit/fp32/folds.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// What the FP32 kernel models are trained on.
struct TrainingSet {
  MeasurementFile file;                         ///< holds the rows that `gpus` refer to
  std::int64_t rows = 0;                        ///< of it that are trained on
  std::optional<ConvolutionRows> convolutions;  ///< fp32_conv.csv, where there is one
  std::vector<GpuData> gpus;                    ///< rows with split = train only

  /// GPUs whose linear rows are left out.
  std::vector<std::string> anomalous_linear() const;
};

/// Reads `fp32.csv` of `data_dir` (or of its folder kernels/), and `fp32_conv.csv` beside it.
/// Throws InputError for malformed data and for rows of GPUs that the model must not see.
TrainingSet read_training_set(const std::filesystem::path& data_dir, const GpuLookup& lookup);

struct TrainOptions {
  std::uint64_t seed = 1;  ///< of the neural form; the parametric form has no randomness
  EffectRule rule;         ///< for GPUs that were not measured
  /// Also train what the model is compared with: the `neusight` form, which joins the weights, and
  /// the baselines of the LOGO table.
  bool baselines = true;
};

/// Assembles the weights from fits of `set`: parameters of the fit to all GPUs, spreads and LOGO
/// scores from those that leave one out (none where `folds` has none). Deterministic: same data and
/// options, same weights to the last bit.
PredictorWeights train(const TrainingSet& set, const Folds& folds, const TrainOptions& options);

}  // namespace tessera
