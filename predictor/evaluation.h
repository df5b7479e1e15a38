#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "predictor/half/tensor_weights.h"
#include "predictor/kernel_predictor.h"
#include "predictor/training/dataset.h"
#include "predictor/weights.h"

namespace tessera {

/// Error of the predictions for one operator on one GPU, over rows with a measured latency.
struct KernelErrorGroup {
  std::string gpu, op;
  std::int64_t n = 0;
  double mean_abs_error_pct = 0;
  double median_abs_error_pct = 0;
};

/// Of absolute errors in percent, at least one; reorders them.
KernelErrorGroup error_group(std::string gpu, MeasuredOp op, std::vector<double>& errors);

/// Predictions for a file of timed (or untimed) kernels.
struct KernelScores {
  MeasurementFile file;
  std::vector<double> predicted_us;      ///< per row, timed as the row says (launch gap or not)
  std::vector<KernelErrorGroup> groups;  ///< GPUs in order of appearance, then operators
};

/// Predicts every row of a file in the format of measurements/kernels/fp32.csv or tensor_core.csv;
/// linear layers of bf16 and fp16 need weights of theirs and the form tessera. Throws InputError
/// for malformed rows, rows of another number format than fp32, and GPUs that `lookup` does not
/// know.
KernelScores score_kernels(const std::filesystem::path& csv, const PredictorWeights& weights,
                           PredictorForm form, const GpuLookup& lookup);

/// The file with one more column, predicted_us.
std::string predicted_csv(const KernelScores& scores);
/// {"groups": [{"gpu", "op", "n", "mean_abs_error_pct", "median_abs_error_pct"}, ...]}
std::string error_groups_json(const KernelScores& scores);

}  // namespace tessera
