#pragma once

#include <functional>

#include "lab/validate/runs/framework_aliases.h"
#include "lab/validate/runs/training_runs.h"
#include "sim/config/catalog.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// Builds the scenario of a run; throws InputError where it can't be expressed.
using ScenarioOfTrainingRun = std::function<Scenario(const TrainingRun&)>;

/// The scenario that repeats a measured step: the framework profile that `aliases` names, on the
/// catalog's cluster of such nodes, else on a box of such GPUs. A model is what its columns say;
/// dropout is 0.1 for gpt and bert, 0 for llama. BERT runs on the modules of Hugging Face whatever
/// the framework. Throws InputError naming the row where that cannot be simulated.
Scenario scenario_of_training_run(const TrainingRun& run, const FrameworkAliases& aliases,
                                  const Catalog& catalog);

}  // namespace tessera
