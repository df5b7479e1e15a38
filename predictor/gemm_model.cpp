#include "predictor/gemm_model.h"

namespace tessera {
namespace {

/// Share of the extra sectors that rows of k elements touch: rows of a multiple of 8 elements start
/// on a 32-byte sector, odd ones hardly ever.
double sector_misalignment(std::int64_t k) {
  if (k % 8 == 0) return 0;
  if (k % 4 == 0) return 0.5;
  return k % 2 == 0 ? 0.75 : 0.875;
}

}  // namespace

GemmShape gemm_shape(const Kernel& kernel) {
  const bool strided = kernel.layout == GemmLayout::tn;
  return {.batch = static_cast<double>(kernel.batch),
          .m = static_cast<double>(kernel.m),
          .n = static_cast<double>(kernel.n),
          .k = static_cast<double>(kernel.k),
          .bytes = static_cast<double>(kernel.bytes().value()),
          .strided = strided,
          .misalignment = strided ? sector_misalignment(kernel.k) : 0};
}

}  // namespace tessera
