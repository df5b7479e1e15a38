#include "sim/scenario/rules/check_scenario.h"

#include <utility>

#include "sim/scenario/rules/framework_rules.h"
#include "sim/scenario/rules/rules.h"

namespace tessera {

std::vector<Problem> check_fields(const Scenario& scenario) {
  std::vector<Problem> problems = check_model(scenario.model);
  check_layout(scenario, problems);
  check_precisions(scenario, problems);
  check_memory(scenario, problems);
  check_host_update(scenario, problems);
  check_overrides(scenario, problems);
  return problems;
}

std::vector<Problem> check_framework(const Scenario& scenario) {
  Problems problems;
  if (scenario.model.family == ModelFamily::vision) {
    check_images(scenario, problems);
  } else {
    problems = FrameworkRules(scenario.model, scenario.step).run();
  }
  check_optimizer(scenario, problems);
  return problems;
}

std::vector<Problem> check_scenario(const Scenario& scenario) {
  std::vector<Problem> problems = check_fields(scenario);
  return problems.empty() ? check_framework(scenario) : problems;
}

void require_sound(const Scenario& scenario) {
  std::vector<Problem> problems = check_scenario(scenario);
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace tessera
