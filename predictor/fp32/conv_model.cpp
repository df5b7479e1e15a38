#include "predictor/fp32/conv_model.h"

namespace tessera {
namespace {

/// Images, and rows and columns of 2x2 outputs, that one thread block covers: 32 for 32 filters.
struct WinogradBlock {
  double images, rows, columns;
};

/// As in kernel names (tile148t, tile244n): all of them in Maxwell's kernels, the first alone
/// later.
constexpr std::array<WinogradBlock, 6> kWinogradBlocks{
    {{1, 4, 8}, {2, 4, 4}, {2, 2, 8}, {4, 1, 8}, {4, 2, 4}, {4, 4, 2}}};
constexpr double kFiltersPerBlock = 32;

}  // namespace

ConvolutionShape convolution_shape(const Kernel& kernel) {
  const ConvolutionGeometry& geometry = kernel.convolution;
  ConvolutionShape s{.groups = static_cast<double>(kernel.batch),
                     .filters = static_cast<double>(kernel.n),
                     .out_height = static_cast<double>(geometry.out_height),
                     .out_width = static_cast<double>(geometry.out_width),
                     .window = static_cast<double>(geometry.window),
                     .stride = static_cast<double>(geometry.stride)};
  const auto m = static_cast<double>(kernel.m), k = static_cast<double>(kernel.k);
  const auto element = static_cast<double>(element_bytes(kernel.precision));
  s.images = m / (s.out_height * s.out_width);
  s.channels = k / (s.window * s.window);
  s.weight_bytes = element * s.groups * s.filters * k;
  s.output_bytes = element * m * s.groups * s.filters;
  s.input_bytes = static_cast<double>(kernel.bytes().value()) - s.weight_bytes - s.output_bytes;
  return s;
}

double convolution_bound_seconds(const ConvolutionShape& s, const GpuTraits& gpu) {
  const double direct = implicit_gemm_product(s).flops();
  const double least = s.winograd() ? direct / 4 : direct;
  return std::max(least / gpu.flops, s.bytes() / gpu.bandwidth);
}

GemmShape implicit_gemm_product(const ConvolutionShape& s) {
  return {
      .batch = s.groups, .m = s.positions(), .n = s.filters, .k = s.channels * s.window * s.window};
}

GemmShape staged_winograd_product(const ConvolutionShape& s) {
  constexpr double kPoints = 36;
  const double tiles = s.images * std::ceil(s.out_height / 4) * std::ceil(s.out_width / 4);
  return {.batch = kPoints, .m = tiles, .n = s.filters, .k = s.channels};
}

GemmShape fused_winograd_product(const ConvolutionShape& s, const GpuTraits& gpu) {
  const bool maxwell = gpu.family == SgemmFamily::maxwell;
  const double rows = std::ceil(s.out_height / 2), columns = std::ceil(s.out_width / 2);
  const auto blocks = [&](const WinogradBlock& block) {
    return std::ceil(s.images / block.images) * std::ceil(rows / block.rows) *
           std::ceil(columns / block.columns);
  };
  double fewest = blocks(kWinogradBlocks.front());
  for (const WinogradBlock& block : kWinogradBlocks)
    if (maxwell) fewest = std::min(fewest, blocks(block));
  return {.m = 128 * fewest * std::ceil(s.filters / kFiltersPerBlock), .n = 128, .k = s.channels};
}

ConvolutionTerms<double> fastest_algorithm(const ConvolutionShape& s,
                                           const ConvolutionGpu<double>& gpu,
                                           const ConvolutionParameters<double>& p) {
  ConvolutionTerms<double> fastest = implicit_gemm(s, gpu, p);
  if (!s.winograd()) return fastest;
  for (const auto& terms : {fused_winograd(s, gpu, p), staged_winograd(s, gpu, p)})
    if (terms.seconds(p) < fastest.seconds(p)) fastest = terms;
  return fastest;
}

}  // namespace tessera
