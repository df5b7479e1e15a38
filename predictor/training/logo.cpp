#include "predictor/training/logo.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "predictor/kernel_predictor.h"
#include "predictor/training/neusight_training.h"

namespace tessera {
namespace {

constexpr double kLongCall = 1000;          // [us]
constexpr std::int32_t kFreshCalls = 1000;  // convolutions before the launch floor has risen much

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

void score_form(const GpuData& gpu, PredictorForm form, const std::string& name,
                const PredictorWeights& weights, std::vector<LogoScore>& scores) {
  const auto predictor = make_predictor(form, gpu.spec, weights);
  std::map<std::string, std::vector<double>> errors;
  for (const KernelMeasurement* row : gpu.rows) {
    const Kernel kernel = kernel_of(*row);
    const Seconds predicted =
        predictor->duration(kernel) + predictor->isolated_launch_overhead(kernel);
    const double error = 100 * std::abs(predicted.value() * 1e6 / row->latency_us - 1);
    const std::string op(name_of(row->op));
    errors[op].push_back(error);
    if (row->latency_us >= kLongCall) errors[op + " >=1ms"].push_back(error);
    if (row->op == MeasuredOp::conv2d && row->earlier < kFreshCalls)
      errors[op + " fresh"].push_back(error);
  }
  for (auto& [op, values] : errors) scores.push_back(score_of(name, gpu.spec.id, op, values));
}

}  // namespace

std::vector<LogoScore> leave_one_gpu_out(const std::vector<GpuData>& data,
                                         const TrainOptions& options) {
  std::vector<LogoScore> scores;
  if (data.size() < 2) return scores;
  for (const GpuData& left_out : data) {
    std::vector<const GpuData*> others;
    for (const GpuData& gpu : data)
      if (&gpu != &left_out) others.push_back(&gpu);
    PredictorWeights weights = fit_parametric(others).weights;
    score_form(left_out, PredictorForm::roofline, "roofline", weights, scores);
    score_form(left_out, PredictorForm::tessera, "tessera", weights, scores);
    if (!options.neusight) continue;
    weights.neusight = train_neusight(others, options.seed);
    score_form(left_out, PredictorForm::neusight, "neusight", weights, scores);
  }
  return scores;
}

}  // namespace tessera
