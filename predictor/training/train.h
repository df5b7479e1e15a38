#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "predictor/training/dataset.h"
#include "predictor/weights.h"

namespace tessera {

struct TrainOptions {
  std::uint64_t seed = 1;     ///< of the neural form; the parametric form has no randomness
  bool leave_one_out = true;  ///< also train once without each GPU and score it (LOGO)
  bool neusight = true;       ///< also train the `neusight` form
};

struct TrainingReport {
  PredictorWeights weights;                   ///< LOGO scores are in weights.logo
  std::vector<std::string> anomalous_linear;  ///< GPUs whose linear rows were left out
  double gemm_mean_abs_log_error = 0;         ///< of the fit itself, linear layers
  double batched_mean_abs_log_error = 0;
  double memory_mean_abs_log_error = 0;
  double convolution_mean_abs_log_error = 0;  ///< 0 without timed convolutions
};

/// Trains the FP32 kernel models on `fp32.csv` of `data_dir` (or of its folder kernels/), and on
/// `fp32_conv.csv` beside it where there is one, rows with split = train only. Deterministic: same
/// data and options, same weights to the last bit. Throws InputError for malformed data and for
/// rows of GPUs that the model must not see.
TrainingReport train(const std::filesystem::path& data_dir, const TrainOptions& options,
                     const GpuLookup& lookup);

/// The parametric form fitted to `gpus`; `report.weights` holds no LOGO scores and no neural form.
TrainingReport fit_parametric(const std::vector<const GpuData*>& gpus);

}  // namespace tessera
