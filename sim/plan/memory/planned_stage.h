#pragma once

#include "sim/plan/memory/memory_plan.h"
#include "sim/plan/memory/planned_program.h"
#include "sim/plan/memory/stage_planner.h"

namespace tessera {

/// How the passes of a plan are written.
struct PassStyle {
  GradientStore store = GradientStore::never;
  bool apart = false;  ///< each operator is a segment (planned_pass.h)
};

/// Of backward passes of `step`: which find no gradients to add to.
GradientStore gradient_store(const StepOptions& step);

/// Puts the schedules of `plan` in the place of its stage's passes, and sets its peaks.
void write_stage(const StageMemoryPlan& plan, PassStyle style, Program& program);

/// Peaks of the stage as it is now, and what it lacks of `budget`. Gathers count from where they
/// can start, which may be ahead of kernels that were launched before them; with the times of
/// `reductions`, buffers of gradients until their reduction ends, which may be long behind
/// (places_in_memory).
void measure_stage(StageMemoryPlan& plan, Bytes budget, TimedProgram& timed,
                   const OpTime* reductions = nullptr);

/// Plans the stage and rewrites it. Planners know nothing of what passes take besides, such as
/// gathered parameters: where the whole does not fit, the next round leaves that much free. Where
/// gradients are reduced beside the passes, plans that wait for room until that is done, plans that
/// need not, and those of whole layers are walked through, and the fastest is taken. The program
/// stays as it is where `plan` becomes infeasible.
void plan_stage(StagePlanner& planner, PassStyle style, StageMemoryPlan& plan, TimedProgram& timed);

}  // namespace tessera
