#pragma once

#include <vector>

#include "lab/fit/fp32/dataset.h"
#include "lab/fit/fp32/ingredient.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// The parametric form fitted to the training rows of `gpus`: shared parameters, one effect per
/// GPU, the range of sizes. No rule, spreads, scores or neural form.
PredictorWeights fit_parametric(const std::vector<const GpuData*>& gpus,
                                LeftOutIngredient without = {});

}  // namespace tessera
