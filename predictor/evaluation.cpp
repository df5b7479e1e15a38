#include "predictor/evaluation.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "hw/units/input_error.h"
#include "predictor/half/tensor_gemm_predictor.h"
#include "predictor/training/timed_call.h"

namespace tessera {
namespace {

using Predictors = std::vector<std::unique_ptr<KernelPredictor>>;

bool on_tensor_cores(const KernelMeasurement& row) {
  return row.precision == Precision::bf16 || row.precision == Precision::fp16;
}

void refuse_other_precisions(const MeasurementFile& file, bool half_products) {
  const auto other = std::ranges::find_if(file.rows, [&](const KernelMeasurement& row) {
    const bool half = half_products && row.op == MeasuredOp::linear && on_tensor_cores(row);
    return row.precision != Precision::fp32 && !half;
  });
  if (other == file.rows.end()) return;
  throw InputError({.where = file.path.string(),
                    .what = "holds rows of dtype " + std::string(name_of(other->precision)),
                    .hint = "the form tessera predicts dtype fp32, and linear layers of bf16 and "
                            "fp16; other forms fp32 alone: keep the rows of these"});
}

/// Predictors of half-precision products, by GPU, precision and library.
class TensorPredictors {
 public:
  TensorPredictors(const TensorWeights& weights, const GpuLookup& lookup)
      : weights_(weights), lookup_(lookup) {}

  /// Of a call that was replayed from a graph: start and drain included.
  Seconds timed_call(const std::string& gpu, const KernelMeasurement& row) {
    const std::string stack = measured_stack(gpu, row);
    auto& predictor = predictors_[{gpu, row.precision, stack}];
    if (!predictor)
      predictor =
          std::make_unique<TensorGemmPredictor>(lookup_(gpu), row.precision, weights_, stack);
    return predictor->duration(kernel_of(row)) + predictor->launch_seconds();
  }

 private:
  /// The row's library where it was measured on that GPU in that precision, else unknown.
  std::string measured_stack(const std::string& gpu, const KernelMeasurement& row) const {
    for (const TensorGpuWeights& measured : weights_.gpus)
      for (const TensorStackWeights& stack : measured.stacks)
        if (measured.gpu == gpu && stack.name == row.stack && stack.precision == row.precision)
          return stack.name;
    return "";
  }

  const TensorWeights& weights_;
  const GpuLookup& lookup_;
  std::map<std::tuple<std::string, Precision, std::string>, std::unique_ptr<TensorGemmPredictor>>
      predictors_;
};

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<KernelErrorGroup> error_groups(const KernelScores& scores) {
  std::map<std::tuple<std::size_t, MeasuredOp, Precision>, std::vector<double>> errors;
  for (std::size_t i = 0; i < scores.file.rows.size(); ++i) {
    const KernelMeasurement& row = scores.file.rows[i];
    if (row.latency_us <= 0) continue;
    errors[{row.gpu, row.op, row.precision}].push_back(
        100 * std::abs(scores.predicted_us[i] / row.latency_us - 1));
  }
  std::vector<KernelErrorGroup> groups;
  for (auto& [key, values] : errors) {
    const auto& [gpu, op, precision] = key;
    groups.push_back(error_group(scores.file.gpus[gpu], op, values));
    if (precision != Precision::fp32) groups.back().op += " " + std::string(name_of(precision));
  }
  return groups;
}

/// Shortest text that reads back as a microsecond figure with 6 significant digits.
void append_number(std::string& text, double value) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::general, 6);
  text.append(buffer.data(), end.ptr);
}

}  // namespace

KernelErrorGroup error_group(std::string gpu, MeasuredOp op, std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += error;
  return {.gpu = std::move(gpu),
          .op = std::string(name_of(op)),
          .n = static_cast<std::int64_t>(errors.size()),
          .mean_abs_error_pct = sum / static_cast<double>(errors.size()),
          .median_abs_error_pct = median(errors)};
}

KernelScores score_kernels(const std::filesystem::path& csv, const PredictorWeights& weights,
                           PredictorForm form, const GpuLookup& lookup) {
  KernelScores scores{.file = read_measurements(csv)};
  const bool half_products = weights.tensor_gemm && form == PredictorForm::tessera;
  refuse_other_precisions(scores.file, half_products);
  const TensorWeights none;
  TensorPredictors tensor_predictors(half_products ? *weights.tensor_gemm : none, lookup);
  Predictors predictors;
  for (const std::string& id : scores.file.gpus)
    predictors.push_back(make_predictor(form, lookup(id), weights));
  scores.predicted_us.reserve(scores.file.rows.size());
  for (const KernelMeasurement& row : scores.file.rows) {
    const Seconds predicted = on_tensor_cores(row)
                                  ? tensor_predictors.timed_call(scores.file.gpus[row.gpu], row)
                                  : timed_call(*predictors[row.gpu], row);
    scores.predicted_us.push_back(predicted.value() * 1e6);
  }
  scores.groups = error_groups(scores);
  return scores;
}

std::string predicted_csv(const KernelScores& scores) {
  std::string text;
  text.reserve(scores.file.text->size() + 12 * scores.file.rows.size());
  text.append(scores.file.header).append(",predicted_us\n");
  for (std::size_t i = 0; i < scores.file.rows.size(); ++i) {
    text.append(scores.file.rows[i].line).push_back(',');
    append_number(text, scores.predicted_us[i]);
    text.push_back('\n');
  }
  return text;
}

std::string error_groups_json(const KernelScores& scores) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  for (const KernelErrorGroup& group : scores.groups)
    groups.push_back({{"gpu", group.gpu},
                      {"op", group.op},
                      {"n", group.n},
                      {"mean_abs_error_pct", group.mean_abs_error_pct},
                      {"median_abs_error_pct", group.median_abs_error_pct}});
  return nlohmann::ordered_json{{"groups", std::move(groups)}}.dump(2) + "\n";
}

}  // namespace tessera
