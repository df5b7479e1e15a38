#include "sim/step/run_step.h"

#include <utility>

#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/report/metrics.h"

namespace tessera {
namespace {

Timeline recorded(const TimedProgram& timed, Recording recording) {
  return recording == Recording::every_change ? simulate(timed)
                                              : simulate_without_memory_samples(timed);
}

}  // namespace

StepRun run_step(TimedProgram timed, Recording recording, const OnPassEnd& on_pass_end) {
  const auto end_pass = [&](const char* pass) {
    if (on_pass_end) on_pass_end(pass);
  };
  Timeline timeline = recorded(timed, recording);
  end_pass("simulate");
  StepReport report = measure(timed, timeline);
  end_pass("report");
  return {std::move(timed), std::move(timeline), std::move(report)};
}

StepRun run_step(const Scenario& scenario, const PredictorWeights& weights, Recording recording,
                 const OnPassEnd& on_pass_end) {
  TimedProgram timed = plan_step(scenario, weights);
  if (on_pass_end) on_pass_end("plan");
  return run_step(std::move(timed), recording, on_pass_end);
}

bool may_run_another_step() {
  return !simgrid_was_needed();
}

Seconds step_time_of(const TimedProgram& timed) {
  return simulate_without_memory_samples(timed).step_time;
}

Seconds step_time_of(const Scenario& scenario, const PredictorWeights& weights) {
  return step_time_of(plan_step(scenario, weights));
}

}  // namespace tessera
