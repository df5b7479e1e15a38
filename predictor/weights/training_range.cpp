#include "predictor/weights/training_range.h"

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

ConvolutionRange range_of(const Kernel& kernel) {
  const double window = kernel.convolution.window;
  return {.least_window = window,
          .most_window = window,
          .most_stride = static_cast<double>(kernel.convolution.stride),
          .m = static_cast<double>(kernel.m),
          .n = static_cast<double>(kernel.n),
          .k = static_cast<double>(kernel.k)};
}

/// Passes other than forward, and convolutions where none was timed, count as twice as far out;
/// groups as far as their number, that of what was timed being 1.
Extrapolation beyond(const Kernel& kernel, const std::optional<ConvolutionRange>& limit) {
  constexpr double kUnknown = 2;
  if (!limit) return {"convolution", kUnknown};
  const ConvolutionRange own = range_of(kernel);
  Extrapolation most;
  if (kernel.layout != GemmLayout::tn) most = {"pass", kUnknown};
  most = farther(most, "groups", static_cast<double>(kernel.batch), 1);
  most = farther(most, "window", own.most_window, limit->most_window);
  most = farther(most, "window", limit->least_window, own.least_window);
  most = farther(most, "stride", own.most_stride, limit->most_stride);
  most = farther(most, "m", own.m, limit->m);
  most = farther(most, "n", own.n, limit->n);
  return farther(most, "k", own.k, limit->k);
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

Extrapolation TrainingRange::beyond(const Kernel& kernel) const {
  if (kernel.kind == KernelKind::gemm) return tessera::beyond(sizes(kernel), linear);
  if (kernel.kind == KernelKind::batched_gemm) return tessera::beyond(sizes(kernel), batched);
  if (kernel.kind == KernelKind::convolution) return tessera::beyond(kernel, convolution);
  return farther({}, "traffic", traffic(kernel), memory_bytes);
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
