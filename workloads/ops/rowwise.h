#pragma once

#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// Operators with one reduction per row (the last dimension), and dropout.

enum class NormTerms : std::uint8_t { weight_and_bias, weight, none };

/// LayerNorm, affine unless `terms` are none: 2e; two kernels, grad_input 3e and gamma/beta 2e.
/// Saves the input, mean and reciprocal deviation (8 bytes per row). Source: PyTorch
/// aten/src/ATen/native/cuda/layer_norm_kernel.cu.
Tensor layer_norm(Tape& tape, const std::string& name, const Tensor& x,
                  NormTerms terms = NormTerms::weight_and_bias);
/// RMS norm as Hugging Face composes it: pow, mean, add eps, rsqrt, mul, mul by the weight; between
/// casts to and from fp32 where `x` has 16 bits.
Tensor rms_norm(Tape& tape, const std::string& name, const Tensor& x);
/// With a weight that exists already, [h].
Tensor rms_norm(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight);
/// Rows side by side: another order of `x` is copied first (2e).
/// 2e; the product gradient * output into a temporary (3e), then the kernel itself (3e). Saves the
/// output. Source: PyTorch aten/src/ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out.
Tensor softmax(Tape& tape, const std::string& name, const Tensor& x);
/// 2e; 3e. Saves the output. Rows above 48 KB (a vocabulary) are read twice more forward, and the
/// gradient once more backward, where no cache holds them.
Tensor log_softmax(Tape& tape, const std::string& name, const Tensor& x);
/// native_dropout: 2e + 1; 2e + 1. Saves a mask of one byte per element. Nothing for probability
/// 0. Source: PyTorch aten/src/ATen/native/cuda/Dropout.cu.
Tensor dropout(Tape& tape, const std::string& name, const Tensor& x, double probability);

}  // namespace tessera
