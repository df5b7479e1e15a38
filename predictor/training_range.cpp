#include "predictor/training_range.h"

#include <algorithm>

namespace tessera {
namespace {

GemmRange sizes(const Kernel& kernel) {
  return {static_cast<double>(kernel.batch), static_cast<double>(kernel.m),
          static_cast<double>(kernel.n), static_cast<double>(kernel.k)};
}

Extrapolation farther(const Extrapolation& a, std::string_view input, double size, double most) {
  return size > most * a.factor ? Extrapolation{input, size / most} : a;
}

Extrapolation beyond(const GemmRange& size, const GemmRange& limit) {
  constexpr std::array<std::string_view, 4> kInputs{"batch", "m", "n", "k"};
  Extrapolation most;
  for (std::size_t i = 0; i < kInputs.size(); ++i)
    most = farther(most, kInputs[i], size[i], limit[i]);
  return most;
}

void extend(GemmRange& range, const GemmRange& size) {
  std::transform(range.begin(), range.end(), size.begin(), range.begin(),
                 [](double a, double b) { return std::max(a, b); });
}

double traffic(const Kernel& kernel) {
  return static_cast<double>(kernel.bytes().value());
}

}  // namespace

Extrapolation TrainingRange::beyond(const Kernel& kernel) const {
  if (kernel.kind == KernelKind::gemm) return tessera::beyond(sizes(kernel), linear);
  if (kernel.kind == KernelKind::batched_gemm) return tessera::beyond(sizes(kernel), batched);
  return farther({}, "traffic", traffic(kernel), memory_bytes);
}

void TrainingRange::include(const Kernel& kernel) {
  if (kernel.kind == KernelKind::gemm) return extend(linear, sizes(kernel));
  if (kernel.kind == KernelKind::batched_gemm) return extend(batched, sizes(kernel));
  memory_bytes = std::max(memory_bytes, traffic(kernel));
}

}  // namespace tessera
