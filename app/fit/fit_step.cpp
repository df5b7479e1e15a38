#include "app/fit/fit_step.h"

#include "sim/step/run_step.h"

namespace tessera {
namespace {

/// Fewer GPUs are simulated one by one in less time than anyone waits for.
constexpr int kManyGpus = 64;

}  // namespace

bool spreads_messages(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  return scenario.step.layout.world_size() > kManyGpus && cluster.fabric.spines > 1 &&
         cluster.faults.empty();
}

FitStep simulated_step(const Scenario& given, const PredictorWeights& weights) {
  Scenario scenario = given;
  if (spreads_messages(given)) scenario.cluster.fabric.spines = 1;
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
