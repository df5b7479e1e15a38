#include "app/search/layout_result.h"

#include <utility>

#include "sim/plan/memory/plan_progress.h"
#include "sim/plan/plan.h"
#include "sim/step/run_step.h"

namespace tessera {

namespace {

/// Not simulated: no plan makes it fit.
LayoutResult without_plan(const Layout& layout, const PlannedSteps& steps) {
  LayoutResult result;
  result.layout = layout;
  result.fits = false;
  for (const StageMemoryPlan& stage : steps.memory.stages)
    result.peak_memory = std::max(result.peak_memory, stage.planned_peak);
  const LibraryMemory& libraries = steps.base.library_memory;
  result.memory = {.allocated = result.peak_memory,
                   .reserved = result.peak_memory,
                   .context = libraries.context,
                   .communicators = libraries.communicators};
  return result;
}

DeviceMemory memory_of(const MemoryReport& report) {
  return {.allocated = report.peak,
          .reserved = report.reserved,
          .context = report.context,
          .communicators = report.communicators};
}

LayoutResult result_of(const Layout& layout, const StepReport& report) {
  LayoutResult result{.layout = layout,
                      .step_time = report.step_time,
                      .tokens_per_s = report.tokens_per_s,
                      .mfu = report.mfu.value_or(0),
                      .bubble_fraction = report.bubble_fraction,
                      .peak_memory = report.memory.peak,
                      .memory = memory_of(report.memory),
                      .fits = report.memory.fits,
                      .times = {}};
  for (const TimeCategory category : time_categories()) {
    const Seconds time = report.breakdown[category];
    if (time > Seconds(0)) result.times.emplace_back(label_of(category), time);
  }
  return result;
}

}  // namespace

LayoutResult simulate_layout(const Scenario& base, const Layout& layout,
                             const PredictorWeights& weights) {
  const Scenario scenario = laid_out(base, layout);
  if (!layout.planned) return result_of(layout, run_step(scenario, weights).report);
  PlannedSteps steps = plan_step_memory(scenario, weights, PlanManner{.certifies = false});
  if (!steps.memory.feasible()) return without_plan(layout, steps);
  return result_of(layout, run_step(std::move(steps.planned)).report);
}

}  // namespace tessera
