#pragma once

#include "lab/validate/runs/training_run_scenario.h"
#include "tests/app/explain/shipped.h"

namespace tessera::test {

inline const RowRules& shipped_rules() {
  static const RowRules rules = row_rules(shipped_configs());
  return rules;
}

inline Scenario scenario_of(const TrainingRun& run) {
  static const FrameworkAliases aliases = framework_aliases(shipped_configs());
  return scenario_of_training_run(run, aliases, shipped_configs());
}

}  // namespace tessera::test
