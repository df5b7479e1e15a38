#pragma once

#include "sim/config/catalog.h"
#include "sim/scenario/scenario.h"
#include "sim/validate/training_runs.h"

namespace tessera {

/// The scenario that reproduces a measured training step: the whole step with clipped gradients and
/// Adam. The column `framework` picks the profile: what names "compile" runs Hugging Face modules
/// with fused kernels; "eager", "hf" or "hugging" without; everything else runs Megatron's local
/// transformer, or, for bert, which that does not train, Hugging Face modules. What a row does not
/// state (activation, dropout, token types) is as the family was published. The cluster is the
/// catalog's with that GPU and these counts, else boxes built from the GPU's own links. Throws
/// InputError naming the row where the counts contradict each other.
Scenario scenario_of_training_run(const TrainingRun& run, const Catalog& catalog);

}  // namespace tessera
