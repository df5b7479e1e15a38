#pragma once

namespace tessera {

/// FLOPs of an element, as kernels of one operator count them; sums and products count 1. From the
/// series and divisions that the functions take; GELU's says how fast SMs start such kernels
/// (predictor/fp32/issue_limit.cpp).
namespace pointwise_flops {
inline constexpr double kSigmoid = 4, kSilu = 8, kTanh = 10, kGelu = 15;
}

}  // namespace tessera
