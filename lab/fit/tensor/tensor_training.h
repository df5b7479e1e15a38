#pragma once

#include "lab/fit/tensor/tensor_fit.h"
#include "lab/fit/tensor/tensor_rows.h"
#include "predictor/tensor/tensor_weights.h"

namespace tessera {

/// The shipped weights, and the fit that the fifth of shapes kept from it can judge.
struct TensorTraining {
  TensorWeights weights;  ///< fitted to all shapes; spreads from `shapes`
  TensorFit all;
  TensorFit shapes;  ///< fitted without TensorHoldout::shapes
};

/// `fit` in the form of the weights file, GPUs and stacks in the order of `data`; spreads are zero.
TensorWeights tensor_weights_of(const TensorData& data, const TensorFit& fit);

/// Deterministic: same data, same weights to the last bit.
TensorTraining train_tensor_gemm(const TensorData& data);

}  // namespace tessera
