#pragma once

#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

/// nn.BatchNorm2d over [b, channels, height, width] with the batch's statistics, as cuDNN runs it:
/// one kernel for mean, variance and result (2e per element; the input is read once more where no
/// cache holds a channel), ahead of it one that counts the batch. Backward: one kernel, 3e, which
/// reads gradient and input once more. Saves the input, mean and reciprocal deviation (8 bytes per
/// channel). Running statistics are buffers. Without gradients: one pointwise kernel, 2e.
/// Sources: PyTorch torch/nn/modules/batchnorm.py, aten/src/ATen/native/cudnn/BatchNorm.cpp; cuDNN
/// Developer Guide, cudnnBatchNormalizationForwardTraining (CUDNN_BATCHNORM_SPATIAL).
Tensor batch_norm(Tape& tape, const std::string& name, const Tensor& x);

}  // namespace tessera
