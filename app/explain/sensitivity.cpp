#include "app/explain/sensitivity.h"

#include <cmath>
#include <cstring>
#include <functional>

#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"

namespace tessera {
namespace {

std::string packed(double value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

double unpacked(const std::string& bytes) {
  double value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::function<std::string()> step_time_of(const Scenario& scenario,
                                          const PredictorWeights& weights) {
  return [scenario, &weights] {
    return packed(simulate(plan_step(scenario, weights)).step_time.value());
  };
}

}  // namespace

double elasticity_of(Seconds before, Seconds after, double factor) {
  if (before.value() <= 0 || after.value() <= 0) return 0;
  return std::log(before / after) / std::log(factor);
}

std::vector<Sensitivity> sensitivities(
    const Scenario& scenario, const PredictorWeights& weights, double factor, int jobs,
    const std::function<void(std::size_t, std::size_t)>& on_ended) {
  std::vector<Sensitivity> found;
  std::vector<std::function<std::string()>> calls{step_time_of(scenario, weights)};
  for (const Resource resource : all_resources()) {
    if (!has_resource(scenario, resource)) continue;
    calls.push_back(step_time_of(with_faster(scenario, resource, factor), weights));
    found.push_back({.resource = resource, .factor = factor});
  }
  const std::vector<ForkedOutcome> answers =
      run_forked_each(calls, jobs, [&](std::size_t done) { on_ended(done, calls.size()); });
  for (const ForkedOutcome& answer : answers)
    if (!answer.error.empty()) throw ForkedCallError(answer.error);
  const Seconds before(unpacked(answers.front().result));
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].step_time = Seconds(unpacked(answers[i + 1].result));
    found[i].elasticity = elasticity_of(before, found[i].step_time, factor);
  }
  return found;
}

}  // namespace tessera
