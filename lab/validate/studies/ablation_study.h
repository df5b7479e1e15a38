#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/fit/fp32/ingredient.h"
#include "lab/fit/train.h"
#include "lab/validate/studies/rule_study.h"

namespace tessera {

/// Errors [%] of the model without one ingredient, each a mean over GPUs.
struct AblationScore {
  std::string name;
  double linear = 0;        ///< kernels of GPUs that were left out, all linear rows
  double linear_sound = 0;  ///< the same without GPUs whose linear session is anomalous
  double bmm = 0;
  double models_left_out = 0;  ///< whole models on GPUs that were left out; NaN without models
  double models_measured = 0;  ///< whole models on measured GPUs
};

/// The whole model, then without each ingredient. Every fit is repeated per ingredient: a minute.
std::vector<AblationScore> study_ablations(const TrainingSet& set,
                                           const std::vector<ModelRun>& runs,
                                           const Catalog& catalog, const EffectRule& rule);

/// Errors of the `neusight` and `free_mlp` forms on left-out GPUs by seed; nothing else is random.
struct SeedScore {
  std::uint64_t seed = 0;
  std::string form;
  double linear = 0, bmm = 0;  ///< mean over GPUs [%]
};
std::vector<SeedScore> study_seeds(const TrainingSet& set, const EffectRule& rule);

std::string ablation_table(const std::vector<AblationScore>& ablations,
                           const std::vector<SeedScore>& seeds);

}  // namespace tessera
