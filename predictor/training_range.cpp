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

ConvolutionRange range_of(const Kernel& kernel) {
  const double window = kernel.convolution.window;
  return {.least_window = window,
          .most_window = window,
          .most_stride = static_cast<double>(kernel.convolution.stride),
          .m = static_cast<double>(kernel.m),
          .n = static_cast<double>(kernel.n),
          .k = static_cast<double>(kernel.k)};
}

bool within(const Kernel& kernel, const ConvolutionRange& limit) {
  const ConvolutionRange own = range_of(kernel);
  return kernel.layout == GemmLayout::tn && own.least_window >= limit.least_window &&
         own.most_window <= limit.most_window && own.most_stride <= limit.most_stride &&
         own.m <= limit.m && own.n <= limit.n && own.k <= limit.k;
}

ConvolutionRange united(const ConvolutionRange& a, const ConvolutionRange& b) {
  return {.least_window = std::min(a.least_window, b.least_window),
          .most_window = std::max(a.most_window, b.most_window),
          .most_stride = std::max(a.most_stride, b.most_stride),
          .m = std::max(a.m, b.m),
          .n = std::max(a.n, b.n),
          .k = std::max(a.k, b.k)};
}

}  // namespace

bool TrainingRange::covers(const Kernel& kernel) const {
  if (kernel.kind == KernelKind::gemm) return within(sizes(kernel), linear);
  if (kernel.kind == KernelKind::batched_gemm) return within(sizes(kernel), batched);
  if (kernel.kind == KernelKind::convolution) return convolution && within(kernel, *convolution);
  return traffic(kernel) <= memory_bytes;
}

void TrainingRange::include(const Kernel& kernel) {
  if (kernel.kind == KernelKind::gemm) return extend(linear, sizes(kernel));
  if (kernel.kind == KernelKind::batched_gemm) return extend(batched, sizes(kernel));
  if (kernel.kind == KernelKind::convolution) {
    const ConvolutionRange own = range_of(kernel);
    convolution = convolution ? united(*convolution, own) : own;
    return;
  }
  memory_bytes = std::max(memory_bytes, traffic(kernel));
}

}  // namespace tessera
