#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/fit/fp32/dataset.h"
#include "predictor/kernel_predictor.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// Error of the predictions for one operator on one GPU, over rows with a measured latency.
struct KernelErrorGroup {
  std::string gpu, op;
  std::int64_t n = 0;
  double mean_abs_error_pct = 0;
  double median_abs_error_pct = 0;
  std::optional<double>
      held_pct;  ///< of 80 % intervals that hold the measurement; empty: no row has one
};

/// Of absolute errors in percent, at least one; reorders them.
KernelErrorGroup error_group(std::string gpu, std::string op, std::vector<double>& errors);

/// One row of a file of kernels with its prediction.
struct KernelScore {
  std::string_view line;     ///< the row as it stands in the file
  std::uint16_t gpu = 0;     ///< position in KernelScores::gpus
  std::uint16_t group = 0;   ///< position in KernelScores::ops
  double measured_us = 0;    ///< 0 = the file states none
  double predicted_us = 0;   ///< of a call timed as the row says; 0 where skipped
  double half_width = 0;     ///< of the 80 % interval, in log time; 0 where it is not known
  std::string predicted_as;  ///< the implementation that stood in for an unknown one; else empty
  std::string skipped;       ///< why there is no prediction; empty = there is one
};

/// Predictions for a file of timed (or untimed) kernels.
struct KernelScores {
  std::shared_ptr<const std::string> text;  ///< the file, which rows refer into
  std::string_view header;
  std::vector<std::string> gpus;         ///< ids in order of appearance
  std::vector<std::string> ops;          ///< names of groups: operator, number format
  std::vector<KernelScore> rows;         ///< in the order of the file
  std::vector<KernelErrorGroup> groups;  ///< GPUs in order of appearance, then operators
};

/// A row without a prediction.
struct SkippedKernel {
  std::size_t line = 0;  ///< in the file, from 1
  std::string reason;
};
std::vector<SkippedKernel> skipped_kernels(const KernelScores& scores);

/// Predicts every row of a file in a format of measurements/kernels/: fp32.csv, fp32_conv.csv,
/// tensor_core.csv, attention.csv or memory_bound_fp16.csv, or of a server's operators (latent
/// attention, layers of experts, quantization, causal 1-d convolutions, grouped products), told
/// apart by their columns. The form
/// tessera takes what was timed for what it is: the library or server of the row where it was
/// measured, serving where a server ran attention, the server's kernels of memory_bound_fp16.csv.
/// Rows that cannot be read and rows without a model (unfused attention, a format that the GPU or
/// the form lacks, GPUs that `lookup` does not know) are skipped with the reason. Throws InputError
/// for files without the columns of a format, and files of which every row is skipped.
KernelScores score_kernels(const std::filesystem::path& csv, const PredictorWeights& weights,
                           PredictorForm form, const GpuLookup& lookup);

/// Puts rows in the order of the file and sums up errors by group. Throws InputError where every
/// row is skipped.
void finish_scores(KernelScores& scores, const std::filesystem::path& csv);

/// Takes a text piece by piece.
using TextSink = std::function<void(const std::string&)>;

/// The file with one more column, predicted_us; empty for skipped rows.
void write_predicted_csv(const KernelScores& scores, const TextSink& sink);
/// {"groups": [{"gpu", "op", "n", "mean_abs_error_pct", "median_abs_error_pct", "coverage_80_pct"},
/// ...], "rows": [{every column of the file, "predicted_us", "low_us", "high_us", "error_pct",
/// "predicted_as", "skipped"}, ...],
/// "skipped": [{"id", "reason"}, ...]}: numbers as
/// numbers, empty fields as null; "error_pct" is signed, null where nothing was measured; "skipped"
/// is a reason or null.
void write_scores_json(const KernelScores& scores, const TextSink& sink);

}  // namespace tessera
