#include "app/fit/fit_step.h"

#include "sim/step/run_step.h"

namespace tessera {
FitStep simulated_step(const Scenario& scenario, const PredictorWeights& weights) {
  const StepReport report = run_step(scenario, weights).report;
  const MemoryReport& memory = report.memory;
  FitStep step{.device = {.allocated = memory.peak,
                          .reserved = memory.reserved,
                          .context = memory.context,
                          .communicators = memory.communicators},
               .capacity = memory.capacity,
               .time = report.step_time};
  step.verdict = verdict_of(step.device.total(), step.capacity, memory_spread(scenario));
  return step;
}

}  // namespace tessera
