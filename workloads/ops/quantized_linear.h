#pragma once

#include <cstdint>
#include <string>

#include "workloads/graph/tape.h"
#include "workloads/ops/matmul.h"

namespace tessera {

/// x W^T + bias, W [out, x.last] frozen and held in 4 bits: n / 2 bytes, and a scale in fp32 for
/// every 64 numbers, or in 8 bits with one in fp32 for every 256 scales. A kernel makes W in the
/// format of activations ahead of the product, in backward once more ahead of the input's gradient;
/// it is free behind each. Scales in 8 bits become fp32 first, in two kernels (dequantize and add
/// the offset). Source: bitsandbytes autograd/_functions.py, MatMul4Bit; functional.py,
/// quantize_4bit and dequantize_4bit (recalled).
Tensor quantized_linear(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out,
                        Bias bias);

}  // namespace tessera
