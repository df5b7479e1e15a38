#pragma once

#include "hw/units/precision.h"

namespace tessera {

/// Formats of what a training step keeps per parameter. Micikevicius et al., "Mixed Precision
/// Training", ICLR 2018.
struct MixedPrecision {
#include "configs/schema/fields/mixed_precision.inc"

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
