#pragma once

#include "predictor/gpu/gpu_traits.h"
#include "predictor/weights/weights.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// A linear layer in NN or NT order was never timed. It runs the library's heuristics of linear
/// layers on the memory order of batched products, so it takes half of the log difference between
/// the two at a large size. Log time against the same layer in TN order.
double transposed_shift(const GpuTraits& traits, const GpuEffect& effect, const GemmWeights& gemm,
                        const GemmWeights& batched);

/// The implicit product of a convolution, one for each of its groups, whose operands are read as
/// those of a batched product: stands in where no convolution was timed.
Kernel implicit_product(const Kernel& convolution);

/// A grouped product as a batch of equal groups, the mean size rounded up: stands in where the
/// model knows no groups. One group is the plain product.
Kernel equal_groups(const Kernel& grouped);

}  // namespace tessera
