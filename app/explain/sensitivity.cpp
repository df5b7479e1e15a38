#include "app/explain/sensitivity.h"

#include <cmath>
#include <functional>

#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

std::function<Seconds()> simulated(const Scenario& scenario, const PredictorWeights& weights) {
  return [scenario, &weights] { return step_time_of(scenario, weights); };
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
  std::vector<std::function<Seconds()>> calls{simulated(scenario, weights)};
  for (const Resource resource : all_resources()) {
    if (!has_resource(scenario, resource)) continue;
    calls.push_back(simulated(with_faster(scenario, resource, factor), weights));
    found.push_back({.resource = resource, .factor = factor});
  }
  const auto times =
      forked_each(calls, jobs, [&](std::size_t done) { on_ended(done, calls.size()); });
  const Seconds before = times.front().value();
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].step_time = times[i + 1].value();
    found[i].elasticity = elasticity_of(before, found[i].step_time, factor);
  }
  return found;
}

}  // namespace tessera
