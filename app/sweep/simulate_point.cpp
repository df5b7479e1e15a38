#include "app/sweep/simulate_point.h"

#include <nlohmann/json.hpp>

#include "sim/step/run_step.h"

namespace tessera {

std::string simulate_point(const Scenario& scenario, const PredictorWeights& weights) {
  const StepReport report = run_step(scenario, weights).report;
  using Json = nlohmann::ordered_json;
  Json metrics{{"gpus", report.gpus()},
               {"step_time_s", report.step_time.value()},
               {"tokens_per_s", report.tokens_per_s},
               {"tokens_per_s_per_gpu", report.tokens_per_s_per_gpu},
               {"mfu", report.mfu ? Json(*report.mfu) : Json(nullptr)},
               {"bubble_fraction", report.bubble_fraction},
               {"exposed_communication_s", report.breakdown.exposed_communication().value()},
               {"peak_memory_bytes", report.memory.peak.value()},
               {"reserved_memory_bytes", report.memory.reserved.value()},
               {"context_memory_bytes", report.memory.context.value()},
               {"nccl_memory_bytes", report.memory.communicators.value()},
               {"device_memory_bytes", report.memory.device.value()},
               {"memory_bytes", report.memory.capacity.value()},
               {"fits", report.memory.fits}};
  if (!scenario.approximations.empty()) metrics["approximations"] = scenario.approximations;
  return metrics.dump();
}

}  // namespace tessera
