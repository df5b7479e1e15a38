#pragma once

#include <vector>

#include "predictor/training/dataset.h"
#include "predictor/training/ingredient.h"
#include "predictor/weights.h"

namespace tessera {

/// The parametric form fitted to the training rows of `gpus`: shared parameters, one effect per
/// GPU, the range of sizes. No rule, spreads, scores or neural form.
PredictorWeights fit_parametric(const std::vector<const GpuData*>& gpus,
                                LeftOutIngredient without = {});

}  // namespace tessera
