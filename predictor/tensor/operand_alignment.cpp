#include "predictor/tensor/operand_alignment.h"

namespace tessera {

bool rows_off_16_bytes(const Kernel& product) {
  const std::int64_t bytes = element_bytes(product.precision);
  const auto off = [&](std::int64_t contiguous) { return contiguous * bytes % 16 != 0; };
  switch (product.layout) {
    case GemmLayout::tn:
    case GemmLayout::nn:
      return off(product.k) || off(product.n);
    case GemmLayout::nt:
      return off(product.m) || off(product.n);
  }
  return false;
}

bool leaves_tensor_cores(const Kernel& product) {
  return product.kind == KernelKind::batched_gemm && element_bytes(product.precision) == 2 &&
         rows_off_16_bytes(product);
}

}  // namespace tessera
