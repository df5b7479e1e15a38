#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/validate/runs/framework_aliases.h"
#include "lab/validate/runs/training_runs.h"
#include "sim/config/catalog.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// Builds the scenario of a run; throws InputError where it can't be expressed.
using ScenarioOfTrainingRun = std::function<Scenario(const TrainingRun&)>;

/// What the row becomes: "path=value" of fields of a scenario, as after --set, the later one wins.
/// The framework profile that `aliases` names, the cluster of cluster_of_training_run(), what the
/// columns say and what follows from words in them (row_rules.h), and the row's own settings.
/// Throws InputError naming the row where no scenario can stand for it.
std::vector<std::string> settings_of_training_run(const TrainingRun& run,
                                                  const FrameworkAliases& aliases,
                                                  const Catalog& catalog);

/// The scenario of these settings, read and checked as any other. Throws InputError naming the row.
Scenario scenario_of_training_run(const TrainingRun& run, const FrameworkAliases& aliases,
                                  const Catalog& catalog);

}  // namespace tessera
