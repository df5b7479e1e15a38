#include "predictor/fp32/neusight.h"

#include <algorithm>
#include <cmath>

#include "hw/units/input_error.h"
#include "predictor/fp32/mlp.h"
#include "predictor/fp32/power_mean.h"
#include "predictor/gpu/gpu_support.h"
#include "predictor/roofline.h"

namespace tessera {
namespace {

constexpr double kElementsPerBlock = 512;
constexpr double kBytesPerElement = 4;

/// Tile of the measured product that is nearest in log sizes, among kernels of the GPU's own family
/// where there are any.
const TileExample& nearest_tile(const Kernel& kernel, SgemmFamily family,
                                const std::vector<TileExample>& tiles) {
  constexpr float kOtherFamily = 1e6F;
  const auto log_of = [](std::int64_t v) {
    return std::log(static_cast<float>(std::max<std::int64_t>(v, 1)));
  };
  const float batch = log_of(kernel.batch), m = log_of(kernel.m);
  const float n = log_of(kernel.n), k = log_of(kernel.k);
  const auto distance = [&](const TileExample& t) {
    const float foreign = t.family == family ? 0 : kOtherFamily;
    return foreign + (t.log_batch - batch) * (t.log_batch - batch) + (t.log_m - m) * (t.log_m - m) +
           (t.log_n - n) * (t.log_n - n) + (t.log_k - k) * (t.log_k - k);
  };
  const TileExample* best = &tiles.front();
  float best_distance = distance(*best);
  for (const TileExample& tile : tiles) {
    const float d = distance(tile);
    if (d >= best_distance) continue;
    best = &tile;
    best_distance = d;
  }
  return *best;
}

}  // namespace

std::size_t neusight_class(KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return 0;
    case KernelKind::batched_gemm:
    case KernelKind::convolution:  // as its implicit product
      return 1;
    case KernelKind::softmax:
      return 3;
    case KernelKind::layer_norm:
      return 4;
    default:
      return 2;
  }
}

NeusightTiling neusight_gemm_tiling(const Kernel& kernel, int tile_m, int tile_n) {
  const auto k = static_cast<double>(kernel.k);
  const double blocks_m = std::ceil(static_cast<double>(kernel.m) / tile_m);
  const double blocks_n = std::ceil(static_cast<double>(kernel.n) / tile_n);
  const double area = static_cast<double>(tile_m) * tile_n;
  return {.tile_m = tile_m,
          .tile_n = tile_n,
          .tile_flops = 2 * area * k,
          .tile_bytes = kBytesPerElement * (k * (tile_m + tile_n) + area),
          .tiles = static_cast<double>(kernel.batch) * blocks_m * blocks_n};
}

NeusightTiling neusight_vector_tiling(const Kernel& kernel) {
  const auto bytes = static_cast<double>(std::max<std::int64_t>(kernel.bytes().value(), 1));
  const bool rows = kernel.rows > 0 &&
                    (kernel.kind == KernelKind::softmax || kernel.kind == KernelKind::layer_norm);
  const double elements = std::max(1.0, static_cast<double>(kernel.rows * kernel.cols));
  const double tiles =
      rows ? static_cast<double>(kernel.rows) : std::ceil(elements / kElementsPerBlock);
  return {.tile_flops = std::max(kernel.flops.value(), elements) / tiles,
          .tile_bytes = bytes / tiles,
          .tiles = tiles};
}

double neusight_waves(const NeusightTiling& tiling, const GpuTraits& gpu) {
  return std::ceil(tiling.tiles / gpu.sms);
}

std::array<double, 4> neusight_features(const NeusightTiling& tiling, const GpuTraits& gpu) {
  const double all_waves = neusight_waves(tiling, gpu) * tiling.tile_bytes;
  return {std::log(tiling.tile_flops * gpu.sms / gpu.flops),
          std::log(tiling.tile_bytes * gpu.sms / gpu.bandwidth),
          std::log(all_waves * gpu.sms / gpu.bandwidth), std::log(all_waves * gpu.sms / gpu.l2)};
}

double neusight_ideal_seconds(const NeusightTiling& tiling, const GpuTraits& gpu) {
  return neusight_waves(tiling, gpu) * gpu.sms *
         std::max(tiling.tile_flops / gpu.flops, tiling.tile_bytes / gpu.bandwidth);
}

double neusight_utilization(double alpha, double gamma, double waves) {
  return std::max(kMinUtilization, sigmoid(gamma) - sigmoid(alpha) / waves);
}

namespace {

/// The nets were trained on FP32 kernels; kernels on integers count as such by their bytes.
bool trained_for(const Kernel& kernel) {
  switch (kernel.precision) {
    case Precision::fp32:
      return kernel.kind != KernelKind::attention && kernel.kind != KernelKind::grouped_gemm;
    case Precision::int64:
    case Precision::int8:
      return !is_product(kernel.kind) && kernel.kind != KernelKind::attention;
    default:
      return false;
  }
}

}  // namespace

NeusightPredictor::NeusightPredictor(const GpuSpec& gpu, const PredictorWeights& weights)
    : traits_(gpu_traits(gpu)), range_(weights.range), nets_(weights.neusight) {
  if (nets_.size() != kNeusightClasses)
    throw InputError({.where = "predictor.form",
                      .what = "the weights hold no nets of the neusight form",
                      .hint = "train them (tessera train) or choose the form tessera"});
}

NeusightTiling NeusightPredictor::tiling_of(const Kernel& kernel, const NeusightClass& net) const {
  if (net.tiles.empty()) return neusight_vector_tiling(kernel);
  const TileExample& tile = nearest_tile(kernel, traits_.family, net.tiles);
  return neusight_gemm_tiling(kernel, tile.tile_m, tile.tile_n);
}

KernelPrediction NeusightPredictor::predict(const Kernel& kernel) const {
  if (!trained_for(kernel))
    throw InputError({.where = "predictor.form",
                      .what = "the form neusight has no nets for 16-bit kernels, tensor-core "
                              "products, fused attention and grouped products",
                      .hint = "choose the form tessera or roofline, or run in fp32"});
  if (kernel.bytes().value() <= 0) return {};
  const NeusightClass& net = nets_[neusight_class(kernel.kind)];
  const NeusightTiling tiling = tiling_of(kernel, net);
  const auto features = neusight_features(tiling, traits_);
  Eigen::VectorXd inputs(4);
  for (std::size_t i = 0; i < features.size(); ++i)
    inputs(static_cast<Eigen::Index>(i)) =
        std::clamp((features[i] - net.feature_mean[i]) / net.feature_scale[i], -3.0, 3.0);
  const Eigen::VectorXd outputs = mlp_forward(net.mlp, inputs);
  const double waves = neusight_waves(tiling, traits_);
  const double utilization = neusight_utilization(outputs(0), outputs(1), waves);
  const double bound = roofline_seconds(kernel, traits_);
  const double seconds = std::max(bound, neusight_ideal_seconds(tiling, traits_) / utilization);
  return {.duration = Seconds(seconds),
          .compute_time = Seconds(kernel.flops.value() / traits_.flops),
          .memory_time = Seconds(static_cast<double>(kernel.bytes().value()) / traits_.bandwidth),
          .tile_m = tiling.tile_m,
          .tile_n = tiling.tile_n,
          .waves = tiling.tiles / traits_.sms,
          .utilization = bound / seconds,
          .extrapolated = range_.beyond(kernel)};
}

}  // namespace tessera
