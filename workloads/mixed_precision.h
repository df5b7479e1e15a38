#pragma once

#include "hw/units/precision.h"

namespace tessera {

/// Formats of what a training step keeps per parameter. Micikevicius et al., "Mixed Precision
/// Training", ICLR 2018.
struct MixedPrecision {
  Precision parameters = Precision::fp32;  ///< of the weights that the model holds; where it is not
                                           ///< the compute format, they are cast before each use
  Precision gradients = Precision::fp32;   ///< of the buffer that micro-batches accumulate in
  Precision reduce = Precision::fp32;      ///< in which data-parallel ranks sum gradients
  Precision optimizer_states = Precision::fp32;  ///< of both Adam moments
  bool master_weights = false;  ///< the optimizer keeps an fp32 copy of the parameters
  bool fp8_parameters = false;  ///< weights that multiply in FP8 are held in it, in both orders

  bool operator==(const MixedPrecision&) const = default;
};

constexpr bool is_half(Precision precision) {
  return precision == Precision::bf16 || precision == Precision::fp16;
}

/// Whether operands of products are cast to the format ahead of them, from 16 bits.
constexpr bool is_cast_for_products(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::fp4;
}

/// Format of activations where matrix products compute in `precision`: FP8, FP4 and TF32 are
/// formats of products alone.
constexpr Precision activation_precision(Precision precision) {
  if (is_cast_for_products(precision)) return Precision::bf16;
  return precision == Precision::tf32 ? Precision::fp32 : precision;
}

}  // namespace tessera
