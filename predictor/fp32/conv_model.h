#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "predictor/fp32/gemm_model.h"
#include "predictor/fp32/power_mean.h"
#include "predictor/fp32/soft_minimum.h"
#include "predictor/gpu/gpu_traits.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// A 2-D convolution as its time depends on it; sizes in elements. Gradients count as the forward
/// convolution that they belong to.
struct ConvolutionShape {
  double groups = 1;
  double images = 1, channels = 0, filters = 0;  ///< channels and filters of one group
  double out_height = 0, out_width = 0;
  double window = 1, stride = 1;
  double input_bytes = 0, weight_bytes = 0, output_bytes = 0;

  double positions() const { return images * out_height * out_width; }
  double bytes() const { return input_bytes + weight_bytes + output_bytes; }
  /// Winograd's minimal filtering as cuDNN has it: 3x3 windows at stride 1. Groups have too few
  /// channels to pay for its transforms.
  bool winograd() const { return window == 3 && stride == 1 && groups == 1; }
};

ConvolutionShape convolution_shape(const Kernel& kernel);

/// Lower bound of any of the algorithms below [s]: compulsory traffic at peak bandwidth, and the
/// least arithmetic at peak, a quarter of the direct one where Winograd applies.
double convolution_bound_seconds(const ConvolutionShape& shape, const GpuTraits& gpu);

/// Tiles (positions x filters) of cuDNN's FP32 kernels (scudnn_128x64 and so on in kernel names).
inline constexpr std::array<GemmTile, 3> kConvolutionTiles{{{128, 128}, {128, 64}, {128, 32}}};

/// Parameters of convolutions that all GPUs share. T: double to predict, Dual to train.
template <class T>
struct ConvolutionParameters {
  static constexpr int kCount = 11;

  T norm;           ///< exponent that joins compute and memory time of one kernel, > 1
  T prologue;       ///< prologue and epilogue of a tile, in units of k
  T memory;         ///< 1 / share of peak bandwidth inside products, > 1
  T transform;      ///< 1 / share of peak bandwidth in Winograd's transforms, > 1
  T implicit;       ///< log slowdown of the implicit product against that of staged Winograd
  T fused;          ///< the same of fused Winograd
  T stage_seconds;  ///< fixed cost of each kernel before the last [s]
  T launch_share;   ///< of the launch floor that an isolated call adds to a long kernel
  T quantisation;   ///< share of whole waves in the wave count, in (0, 1)
  std::array<T, kConvolutionTiles.size()> penalty;  ///< log slowdown against tile 0; >= 0

  /// From `kCount` unconstrained numbers, the form in which they are fitted.
  static ConvolutionParameters from_unconstrained(std::span<const T> x) {
    using std::exp;
    return {.norm = T(1.0) + exp(x[0]),
            .prologue = exp(x[1]),
            .memory = T(1.0) + exp(x[2]),
            .transform = T(1.0) + exp(x[3]),
            .implicit = x[4],
            .fused = x[5],
            .stage_seconds = exp(x[6]) * 1e-6,
            .launch_share = sigmoid(x[7]),
            .quantisation = sigmoid(x[8]),
            .penalty = {T(0.0), softplus(x[9]), softplus(x[10])}};
  }
};

/// Where the time of one algorithm goes [s].
template <class T>
struct ConvolutionTerms {
  T compute;  ///< of the product
  T memory;   ///< of the product
  T other;    ///< kernels before and after it: transforms, index tables

  T seconds(const ConvolutionParameters<T>& p) const {
    return other + smooth_max(compute, memory, p.norm);
  }
};

/// What a GPU adds to the shared parameters.
template <class T>
struct ConvolutionGpu {
  const GpuTraits& traits;
  T slowdown;                  ///< log time of products against the shared model
  double sustained_flops = 0;  ///< power-limited rate [FLOP/s]; 0 = not limited
};

/// Waves of `tile`, some share of them whole ones.
template <class T>
T quantised_waves(const GemmShape& s, const GpuTraits& gpu, const ConvolutionParameters<T>& p,
                  const GemmTile& tile) {
  const double waves = wave_count(s, tile, 1, gpu.sms);
  const double soft = std::max(waves, 1.0);
  return p.quantisation * (std::ceil(waves) - soft) + T(soft);
}

/// Time [s] of a product on tile `i` of kConvolutionTiles before what slows all tiles down.
template <class T>
T convolution_tile_seconds(const GemmShape& s, const GpuTraits& gpu,
                           const ConvolutionParameters<T>& p, std::size_t i) {
  using std::exp;
  const GemmTile tile = kConvolutionTiles[i];
  const double per_k = 2.0 * tile.m * tile.n * gpu.sms / gpu.flops;
  return quantised_waves(s, gpu, p, tile) * (p.prologue + T(s.k)) * per_k * exp(p.penalty[i]);
}

/// Time [s] of a product on the first `tiles` of kConvolutionTiles at `slowdown` (log), soft
/// minimum over them; slowed to the power-limited rate of the arithmetic that is really done.
template <class T>
T product_seconds(const GemmShape& s, const ConvolutionGpu<T>& gpu,
                  const ConvolutionParameters<T>& p, const T& slowdown, std::size_t tiles) {
  using std::exp;
  using std::log;
  const double ideal = s.flops() / gpu.traits.flops;
  T sum(0.0);
  for (std::size_t i = 0; i < tiles; ++i) {
    const T seconds = convolution_tile_seconds(s, gpu.traits, p, i);
    sum += soft_minimum_term(T(seconds * (1 / ideal)));
  }
  const T fastest = ideal * exp(log(sum) * (-1.0 / kTileSharpness));
  return limited_by_power(s, T(exp(gpu.slowdown + slowdown) * fastest), gpu.sustained_flops);
}

template <class T>
T traffic_seconds(double bytes, const ConvolutionGpu<T>& gpu, const T& loss) {
  return loss * (bytes / gpu.traits.bandwidth);
}

/// The product of all positions that the implicit algorithm works through, one for each group:
/// tiles do not reach from a group into the next (docs/decisions/0028-grouped-convolutions.md).
GemmShape implicit_gemm_product(const ConvolutionShape& shape);

/// Implicit GEMM: one product over all positions, rows of the left operand gathered from the images
/// by an index table that a small kernel writes first. A 1x1 window makes it a plain GEMM.
template <class T>
ConvolutionTerms<T> implicit_gemm(const ConvolutionShape& s, const ConvolutionGpu<T>& gpu,
                                  const ConvolutionParameters<T>& p) {
  return {.compute = product_seconds(implicit_gemm_product(s), gpu, p, p.implicit,
                                     kConvolutionTiles.size()),
          .memory = traffic_seconds(s.bytes(), gpu, p.memory),
          .other = p.stage_seconds};
}

/// The product that fused Winograd works through: 128x128 accumulators per thread block, blocks
/// stacked along m.
GemmShape fused_winograd_product(const ConvolutionShape& shape, const GpuTraits& gpu);

/// Fused Winograd F(2x2,3x3): a kernel transforms the filters (16 numbers for 9), one more does the
/// rest. 2.25 times fewer multiplications than the direct product.
template <class T>
ConvolutionTerms<T> fused_winograd(const ConvolutionShape& s, const ConvolutionGpu<T>& gpu,
                                   const ConvolutionParameters<T>& p) {
  const double filters = s.weight_bytes * (1 + 16.0 / 9);
  return {.compute = product_seconds(fused_winograd_product(s, gpu.traits), gpu, p, p.fused, 1),
          .memory = traffic_seconds(s.bytes(), gpu, p.memory),
          .other = p.stage_seconds + traffic_seconds(filters, gpu, p.transform)};
}

/// The 36 products of staged Winograd.
GemmShape staged_winograd_product(const ConvolutionShape& shape);

/// Staged (non-fused) Winograd F(4x4,3x3): kernels transform input and filters to 36 numbers per
/// 4x4 outputs and per 3x3 filter, 36 products follow, and one more kernel transforms back. 4 times
/// fewer multiplications, for the traffic between the stages.
template <class T>
ConvolutionTerms<T> staged_winograd(const ConvolutionShape& s, const ConvolutionGpu<T>& gpu,
                                    const ConvolutionParameters<T>& p) {
  constexpr double kBytes = 4;
  const GemmShape product = staged_winograd_product(s);
  const double tiles = product.m;
  const double between =
      product.batch * kBytes * (tiles * s.channels + tiles * s.filters + s.channels * s.filters);
  return {.compute = product_seconds(product, gpu, p, T(0.0), kConvolutionTiles.size()),
          .memory = traffic_seconds(between, gpu, p.memory),
          .other = p.stage_seconds * 3.0 + traffic_seconds(s.bytes() + between, gpu, p.transform)};
}

/// Where the time goes in the algorithm that is fastest.
ConvolutionTerms<double> fastest_algorithm(const ConvolutionShape& shape,
                                           const ConvolutionGpu<double>& gpu,
                                           const ConvolutionParameters<double>& p);

/// Duration [s] in a queued stream: the library times its algorithms once and keeps the fastest,
/// hence a soft minimum over those that apply.
template <class T>
T convolution_seconds(const ConvolutionShape& s, const ConvolutionGpu<T>& gpu,
                      const ConvolutionParameters<T>& p) {
  using std::exp;
  using std::log;
  const T implicit = implicit_gemm(s, gpu, p).seconds(p);
  if (!s.winograd()) return implicit;
  const T fused = fused_winograd(s, gpu, p).seconds(p);
  const T staged = staged_winograd(s, gpu, p).seconds(p);
  const T sum =
      T(1.0) + soft_minimum_term(T(fused / implicit)) + soft_minimum_term(T(staged / implicit));
  return implicit * exp(log(sum) * (-1.0 / kTileSharpness));
}

}  // namespace tessera
