#pragma once

#include <string>

#include "lab/fit/studies/tensor_study.h"
#include "predictor/tensor/tensor_weights.h"

namespace tessera {

/// Parameters of the half-precision products, then their errors on unseen shapes, matrices and
/// GPUs.
std::string tensor_study_text(const TensorWeights& weights, const TensorStudy& study);

}  // namespace tessera
