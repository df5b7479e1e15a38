#include "app/fit/fit_step.h"

#include <nlohmann/json.hpp>

#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/report/metrics.h"

namespace tessera {
namespace {

using StepJson = nlohmann::json;

StepJson json_of(const DeviceMemory& device) {
  return {device.allocated.value(), device.reserved.value(), device.context.value(),
          device.communicators.value()};
}

DeviceMemory device_of(const StepJson& json) {
  const auto bytes = [&](int at) { return Bytes(json[at].get<std::int64_t>()); };
  return {
      .allocated = bytes(0), .reserved = bytes(1), .context = bytes(2), .communicators = bytes(3)};
}

}  // namespace

FitStep simulated_step(const Scenario& scenario, const PredictorWeights& weights) {
  const TimedProgram timed = plan_step(scenario, weights);
  const StepReport report = measure(timed, simulate_without_memory_samples(timed));
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

std::string packed(const FitStep& step) {
  return StepJson{json_of(step.device), step.capacity.value(), step.time->value(),
                  static_cast<int>(step.verdict)}
      .dump();
}

FitStep unpacked_step(const std::string& text) {
  const StepJson json = StepJson::parse(text);
  return {.device = device_of(json[0]),
          .capacity = Bytes(json[1].get<std::int64_t>()),
          .time = Seconds(json[2].get<double>()),
          .verdict = static_cast<FitVerdict>(json[3].get<int>()),
          .refused = {}};
}

std::string packed(const MemoryNeed& need) {
  StepJson parts = StepJson::array();
  for (int c = 0; c < kMemoryCategories; ++c)
    parts.push_back(need.parts[static_cast<MemoryCategory>(c)].value());
  return StepJson{need.stage, json_of(need.device), need.capacity.value(), parts}.dump();
}

MemoryNeed unpacked_need(const std::string& text) {
  const StepJson json = StepJson::parse(text);
  MemoryNeed need{.stage = json[0].get<int>(),
                  .parts = {},
                  .device = device_of(json[1]),
                  .capacity = Bytes(json[2].get<std::int64_t>())};
  for (int c = 0; c < kMemoryCategories; ++c)
    need.parts[static_cast<MemoryCategory>(c)] = Bytes(json[3][c].get<std::int64_t>());
  return need;
}

}  // namespace tessera
