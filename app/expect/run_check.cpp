#include "app/expect/run_check.h"

#include <cmath>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

/// What crosses from the process that simulates.
using PhaseTimes = std::vector<Seconds>;

PhaseTimes simulated_phases(const Scenario& scenario, const PredictorWeights& weights) {
  const TimeBreakdown breakdown = run_step(scenario, weights).report.breakdown;
  PhaseTimes times;
  for (const TimeCategory category : time_categories()) times.push_back(breakdown[category]);
  return times;
}

RunCheck check_of(ExpectedRun run, const PhaseTimes& times) {
  RunCheck check{.run = std::move(run), .step_time = {}, .phases = {}};
  std::size_t next = 0;
  for (const TimeCategory category : time_categories()) check.phases[category] = times[next++];
  check.step_time = check.phases.total();
  return check;
}

}  // namespace

std::optional<double> RunCheck::change() const {
  if (!run.step_time) return std::nullopt;
  return step_time / *run.step_time - 1;
}

bool RunCheck::within(double tolerance) const {
  return !run.step_time || std::abs(*change()) <= tolerance;
}

std::optional<MovedPhase> RunCheck::moved() const {
  if (!run.phases) return std::nullopt;
  const double sign = change().value_or(0) < 0 ? -1 : 1;
  std::optional<MovedPhase> most;
  for (const TimeCategory category : time_categories()) {
    const MovedPhase phase{category, (*run.phases)[category], phases[category]};
    if (!most || sign * phase.change() > sign * most->change()) most = phase;
  }
  return most;
}

std::vector<RunCheck> check_runs(std::vector<ExpectedRun> runs, const PredictorWeights& weights,
                                 int jobs, const std::function<void(std::size_t)>& on_ended) {
  std::vector<std::function<PhaseTimes()>> calls;
  for (const ExpectedRun& run : runs)
    calls.emplace_back([&] { return simulated_phases(run.step, weights); });
  const auto answers = forked_each(calls, jobs, on_ended);
  std::vector<RunCheck> checks;
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (answers[i].answer)
      checks.push_back(check_of(std::move(runs[i]), *answers[i].answer));
    else
      problems.push_back({runs[i].where, "cannot be simulated: " + answers[i].error, ""});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return checks;
}

}  // namespace tessera
