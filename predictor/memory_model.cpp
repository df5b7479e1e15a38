#include "predictor/memory_model.h"

namespace tessera {

MemoryShape memory_shape(const Kernel& kernel) {
  // PyTorch keeps softmax rows of up to 1024 elements in one warp (softmax_warp_forward).
  constexpr std::int64_t kWarpRow = 1024;
  return {.memory_class = memory_traits(kernel.kind).memory_class,
          .bytes = static_cast<double>(kernel.bytes().value()),
          .rows = static_cast<double>(kernel.rows),
          .wide = kernel.cols > kWarpRow};
}

}  // namespace tessera
