#include "predictor/evaluation.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "hw/units/input_error.h"
#include "predictor/training/timed_call.h"

namespace tessera {
namespace {

using Predictors = std::vector<std::unique_ptr<KernelPredictor>>;

void refuse_other_precisions(const MeasurementFile& file) {
  const auto other = std::ranges::find_if(
      file.rows, [](const KernelMeasurement& row) { return row.precision != Precision::fp32; });
  if (other == file.rows.end()) return;
  throw InputError({.where = file.path.string(),
                    .what = "holds rows of dtype " + std::string(name_of(other->precision)),
                    .hint = "the kernel model is fp32 only; keep the rows of dtype fp32"});
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<KernelErrorGroup> error_groups(const KernelScores& scores) {
  std::vector<std::vector<std::vector<double>>> errors(
      scores.file.gpus.size(), std::vector<std::vector<double>>(kMeasuredOps));
  for (std::size_t i = 0; i < scores.file.rows.size(); ++i) {
    const KernelMeasurement& row = scores.file.rows[i];
    if (row.latency_us <= 0) continue;
    errors[row.gpu][static_cast<std::size_t>(row.op)].push_back(
        100 * std::abs(scores.predicted_us[i] / row.latency_us - 1));
  }
  std::vector<KernelErrorGroup> groups;
  for (std::size_t gpu = 0; gpu < errors.size(); ++gpu)
    for (std::size_t op = 0; op < kMeasuredOps; ++op)
      if (!errors[gpu][op].empty())
        groups.push_back(
            error_group(scores.file.gpus[gpu], static_cast<MeasuredOp>(op), errors[gpu][op]));
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
  refuse_other_precisions(scores.file);
  Predictors predictors;
  for (const std::string& id : scores.file.gpus)
    predictors.push_back(make_predictor(form, lookup(id), weights));
  scores.predicted_us.reserve(scores.file.rows.size());
  for (const KernelMeasurement& row : scores.file.rows)
    scores.predicted_us.push_back(timed_call(*predictors[row.gpu], row).value() * 1e6);
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
