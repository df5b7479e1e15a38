#pragma once

#include <string>

#include "workloads/ops/vision/convolution.h"

namespace tessera {

// Pieces that several image models share.

/// Convolution, batch norm and ReLU in place, under the names NAME.conv, .norm and .relu.
Tensor convolution_norm_relu(Tape& tape, const std::string& name, const Tensor& x,
                             const ConvolutionLayer& layer);

/// Average over each image and a linear classifier with as many outputs as there are classes, after
/// a dropout. [b, channels, h, w] -> [b, classes]
Tensor pooled_classifier(Tape& tape, const Tensor& x, std::int64_t classes, double dropout_share);

}  // namespace tessera
