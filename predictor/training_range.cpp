#include "predictor/training_range.h"

#include <algorithm>

namespace tessera {
namespace {

GemmRange sizes(const Kernel& kernel) {
  return {static_cast<double>(kernel.batch), static_cast<double>(kernel.m),
          static_cast<double>(kernel.n), static_cast<double>(kernel.k)};
}

bool within(const GemmRange& size, const GemmRange& limit) {
  return std::equal(size.begin(), size.end(), limit.begin(),
                    [](double value, double most) { return value <= most; });
}

void extend(GemmRange& range, const GemmRange& size) {
  std::transform(range.begin(), range.end(), size.begin(), range.begin(),
                 [](double a, double b) { return std::max(a, b); });
}

double traffic(const Kernel& kernel) {
  return static_cast<double>(kernel.bytes().value());
}

}  // namespace

bool TrainingRange::covers(const Kernel& kernel) const {
  if (kernel.kind == KernelKind::gemm) return within(sizes(kernel), linear);
  if (kernel.kind == KernelKind::batched_gemm) return within(sizes(kernel), batched);
  return traffic(kernel) <= memory_bytes;
}

void TrainingRange::include(const Kernel& kernel) {
  if (kernel.kind == KernelKind::gemm) return extend(linear, sizes(kernel));
  if (kernel.kind == KernelKind::batched_gemm) return extend(batched, sizes(kernel));
  memory_bytes = std::max(memory_bytes, traffic(kernel));
}

}  // namespace tessera
