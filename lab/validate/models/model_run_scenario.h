#pragma once

#include <string>
#include <vector>

#include "lab/validate/models/model_runs.h"
#include "sim/config/catalog.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// What a measured run becomes: "path=value" of fields of a scenario, as NeuSight's artifact timed
/// it:
/// - one GPU: Hugging Face modules in eager mode (`_fused`: torch.compile); training is
/// forward and backward alone;
/// - several GPUs: Megatron's whole training step with the local transformer.
/// The cluster is the catalog's single node with that GPU and count, else a box built from the
/// GPU's own links. Throws InputError where the row names an unknown GPU or mode.
std::vector<std::string> settings_of_run(const ModelRun& run, PredictorForm form,
                                         const Catalog& catalog);

/// The scenario of these settings, read and checked as any other.
Scenario scenario_of_run(const ModelRun& run, PredictorForm form, const Catalog& catalog);

}  // namespace tessera
