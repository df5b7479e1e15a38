#include "lab/fit/fp32/logo.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "hw/units/parallel_for.h"
#include "lab/fit/baselines/free_mlp.h"
#include "lab/fit/baselines/per_op_regression.h"
#include "lab/fit/fp32/neusight_training.h"
#include "predictor/kernel_predictor.h"

namespace tessera {
namespace {

constexpr double kLongCall = 1000;  // [us]

LogoScore score_of(const std::string& form, const std::string& gpu, const std::string& op,
                   std::vector<double>& errors) {
  LogoScore score{
      .form = form, .gpu = gpu, .op = op, .n = static_cast<std::int64_t>(errors.size())};
  for (const double error : errors) score.mean_abs_error_pct += error;
  score.mean_abs_error_pct /= static_cast<double>(errors.size());
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  score.median_abs_error_pct = *middle;
  return score;
}

/// `seconds` of a row: predicted latency of the isolated call.
void score_rows(const GpuData& gpu, const std::string& name,
                const std::function<double(const KernelMeasurement&)>& seconds,
                std::vector<LogoScore>& scores) {
  std::map<std::string, std::vector<double>> errors;
  for (const KernelMeasurement* row : gpu.rows) {
    const double error = 100 * std::abs(seconds(*row) * 1e6 / row->latency_us - 1);
    const std::string op(name_of(row->op));
    errors[op].push_back(error);
    if (row->latency_us >= kLongCall) errors[op + " >=1ms"].push_back(error);
    if (row->op == MeasuredOp::conv2d && row->earlier < kFreshCalls)
      errors[op + " fresh"].push_back(error);
  }
  for (auto& [op, values] : errors) scores.push_back(score_of(name, gpu.spec.id, op, values));
}

void score_form(const GpuData& gpu, PredictorForm form, const std::string& name,
                const PredictorWeights& weights, std::vector<LogoScore>& scores) {
  const auto predictor = make_predictor(form, gpu.spec, weights);
  const auto seconds = [&](const KernelMeasurement& row) {
    const Kernel kernel = kernel_of(row);
    return (predictor->duration(kernel) + predictor->isolated_launch_overhead(kernel)).value();
  };
  score_rows(gpu, name, seconds, scores);
}

/// Scores models that are trained to be compared with, and for nothing else.
void score_baselines(const std::vector<const GpuData*>& trained_on, const GpuData& gpu,
                     std::uint64_t seed, std::vector<LogoScore>& scores) {
  const auto score = [&](const std::string& name, const auto& model) {
    const auto seconds = [&](const KernelMeasurement& row) {
      return model.seconds(row, gpu.traits);
    };
    score_rows(gpu, name, seconds, scores);
  };
  score("regression", PerOpRegression(trained_on));
  score("free_mlp", FreeMlp(trained_on, seed));
}

}  // namespace

std::vector<LogoScore> leave_one_gpu_out(const Folds& folds, const TrainOptions& options) {
  std::vector<std::vector<LogoScore>> scores(folds.size());
  parallel_for(folds.size(), [&](std::size_t left_out) {
    PredictorWeights weights = folds.without(left_out);
    weights.rule = options.rule;
    const GpuData& gpu = folds.gpu(left_out);
    std::vector<LogoScore>& own = scores[left_out];
    std::vector<const GpuData*> others;
    for (std::size_t g = 0; g < folds.size(); ++g)
      if (g != left_out) others.push_back(&folds.gpu(g));
    score_form(gpu, PredictorForm::roofline, "roofline", weights, own);
    score_form(gpu, PredictorForm::tessera, "tessera", weights, own);
    if (!options.baselines) return;
    score_baselines(others, gpu, options.seed, own);
    weights.neusight = train_neusight(others, options.seed);
    score_form(gpu, PredictorForm::neusight, "neusight", weights, own);
  });
  std::vector<LogoScore> all;
  for (const auto& own : scores) all.insert(all.end(), own.begin(), own.end());
  return all;
}

}  // namespace tessera
