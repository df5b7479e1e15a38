#pragma once

#include <functional>
#include <string>

#include "predictor/weights/weights.h"
#include "sim/plan/timed_program.h"
#include "sim/report/step_report.h"
#include "sim/scenario/scenario.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// What of a step's memory is kept: its peaks, or every change (Timeline::memory) as well, which
/// large jobs fill with more bytes than all the rest.
enum class Recording { peaks, every_change };

/// One step: what runs, when it ran, and what is known of it.
struct StepRun {
  TimedProgram timed;
  Timeline timeline;
  StepReport report;
};

/// Called at the end of "plan", "simulate" and "report".
using OnPassEnd = std::function<void(const std::string& pass)>;

/// Scenario -> Program -> TimedProgram -> Timeline -> StepReport: the one way from a question to
/// its answer. Throws what plan_step() and simulate() throw, and std::logic_error where SimGrid is
/// needed and has run in this process (may_run_another_step; sim/process/answer.h forks).
StepRun run_step(const Scenario& scenario, const PredictorWeights& weights,
                 Recording recording = Recording::peaks, const OnPassEnd& on_pass_end = {});

/// The same of a step that was planned before, or read from traces.
StepRun run_step(TimedProgram timed, Recording recording = Recording::peaks,
                 const OnPassEnd& on_pass_end = {});

/// Whether this process may run another step: SimGrid, which runs once in a process, has not been
/// needed so far.
bool may_run_another_step();

/// The time of a step alone: nothing of it is measured.
Seconds step_time_of(const TimedProgram& timed);
Seconds step_time_of(const Scenario& scenario, const PredictorWeights& weights);

}  // namespace tessera
