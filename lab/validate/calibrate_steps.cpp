#include "lab/validate/calibrate_steps.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "hw/units/fnv1a.h"
#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "predictor/measured/measurements.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

const double kLargestScalar = std::log(20.0);
constexpr double kScalarTolerance = 1e-6;

/// The runs that can be simulated, with their scenarios.
class StepSet {
 public:
  StepSet(const TrainingRuns& runs, const ScenarioOfTrainingRun& scenario_of, int jobs)
      : skipped_(runs.skipped), jobs_(jobs) {
    for (const TrainingRun& run : runs.runs) add(run, scenario_of);
    if (!runs_.empty()) return;
    std::vector<Problem> problems;
    for (const SkippedRun& run : skipped_)
      problems.push_back({run.where, "cannot be used: " + run.reason, ""});
    throw InputError(std::move(problems));
  }

  /// Step times in the order of the runs.
  std::vector<Seconds> simulate_all(const PredictorWeights& weights) const {
    std::vector<std::function<Seconds()>> steps;
    for (const Scenario& scenario : scenarios_)
      steps.push_back([&] { return step_time_of(scenario, weights); });
    std::vector<Seconds> times;
    for (const auto& time : forked_each(steps, jobs_)) times.push_back(time.value());
    return times;
  }

  /// Mean log of simulated / measured.
  double mean_log_ratio(const std::vector<Seconds>& simulated) const {
    double sum = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i)
      sum += std::log(simulated[i] / *runs_[i].step_time);
    return sum / static_cast<double>(runs_.size());
  }

  const std::vector<TrainingRun>& runs() const { return runs_; }
  std::vector<SkippedRun> skipped() const { return skipped_; }

 private:
  void add(const TrainingRun& run, const ScenarioOfTrainingRun& scenario_of) {
    try {
      Scenario scenario = scenario_of(run);
      build_program(scenario.model, scenario.step);
      runs_.push_back(run);
      scenarios_.push_back(std::move(scenario));
    } catch (const InputError& error) {
      skipped_.push_back({run.where, run.id, run.gpu, error.problems().front().what});
    }
  }

  std::vector<TrainingRun> runs_;
  std::vector<Scenario> scenarios_;
  std::vector<SkippedRun> skipped_;
  int jobs_;
};

[[noreturn]] void refuse_scalar(const TrainingRuns& runs, double ratio) {
  throw InputError({runs.file.string(),
                    formatted("no scalar on the arithmetic explains these steps: simulated / "
                              "measured is %.3g without one",
                              ratio),
                    "check the rows: what else takes time in them, and which GPU ran them"});
}

bool on_tensor_cores(const TrainingRun& run) {
  return run.precision != name_of(Precision::fp32);
}

/// That of the first run, but fp32 where any has it.
Precision precision_of(const std::vector<TrainingRun>& runs) {
  const bool all = std::ranges::all_of(runs, on_tensor_cores);
  return all ? parse_precision(runs.front().precision) : Precision::fp32;
}

/// The zero of the increasing function `at` in [low, high], or nothing where it has none there.
std::optional<double> bisect(double low, double high, const std::function<double(double)>& at) {
  if (at(low) > 0 || at(high) < 0) return std::nullopt;
  while (high - low > kScalarTolerance) {
    const double middle = 0.5 * (low + high);
    (at(middle) > 0 ? high : low) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

GpuOverlay with_slower_compute(GpuOverlay overlay, double log_scalar,
                               const MeasuredArithmetic& of) {
  if (of.fp32) {
    overlay.gemm_slowdown += log_scalar;
    overlay.batched_slowdown += log_scalar;
    overlay.sustained_flops *= std::exp(-log_scalar);
  }
  if (of.tensor_cores) {
    overlay.tensor.compute += log_scalar;
    overlay.tensor.power += log_scalar;
    overlay.tensor.attention += log_scalar;
  }
  return overlay;
}

StepCalibration calibrate_from_steps(const TrainingRuns& runs,
                                     const ScenarioOfTrainingRun& scenario_of, const GpuSpec& gpu,
                                     const PredictorWeights& weights, int jobs) {
  const StepSet steps(runs, scenario_of, jobs);
  GpuOverlay start = neutral_overlay(gpu, weights);
  start.mode = OverlayMode::calibrated_steps;
  start.source = runs.file.filename().string();
  start.source_fnv1a = hash_text(fnv1a(runs.text));
  start.rows = static_cast<std::int64_t>(steps.runs().size());
  start.tensor.rows = std::ranges::count_if(steps.runs(), on_tensor_cores);
  start.precision = precision_of(steps.runs());
  start.weights = hash_text(fingerprint(weights));
  const MeasuredArithmetic arithmetic{
      .fp32 = start.tensor.rows<start.rows, .tensor_cores = start.tensor.rows> 0};
  const auto simulate_with = [&](double scalar) {
    return steps.simulate_all(
        with_overlay(weights, with_slower_compute(start, scalar, arithmetic), gpu));
  };
  const auto ratio_at = [&](double scalar) { return steps.mean_log_ratio(simulate_with(scalar)); };
  const std::vector<Seconds> before = simulate_with(0);
  StepCalibration result;
  result.ratio_before = std::exp(steps.mean_log_ratio(before));
  const auto scalar = bisect(-kLargestScalar, kLargestScalar, ratio_at);
  if (!scalar) refuse_scalar(runs, result.ratio_before);
  const std::vector<Seconds> after = simulate_with(*scalar);
  result.log_scalar = *scalar;
  result.ratio_after = std::exp(steps.mean_log_ratio(after));
  result.skipped = steps.skipped();
  result.other_gpus = runs.left_out;
  for (std::size_t i = 0; i < before.size(); ++i)
    result.steps.push_back({steps.runs()[i], before[i], after[i]});
  result.overlay = with_slower_compute(start, *scalar, arithmetic);
  return result;
}

}  // namespace tessera
