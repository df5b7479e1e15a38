#include "predictor/product_story.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

TileCandidate candidate(const GemmShape& s, double sms, const GemmTile& tile, int split) {
  TileCandidate c{.tile = tile, .split = split, .waves = wave_count(s, tile, split, sms)};
  c.blocks = s.batch * std::ceil(s.m / tile.m) * std::ceil(s.n / tile.n) * split;
  c.blocks_per_sm = std::ceil(c.waves);
  c.sm_utilization = c.waves / c.blocks_per_sm;
  return c;
}

/// Sorts `candidates` by time and fills in what compares them. Returns their soft minimum [s].
template <class Candidate>
double compare(std::vector<Candidate>& candidates) {
  std::ranges::stable_sort(candidates, {}, &Candidate::seconds);
  const double fastest = candidates.front().seconds;
  double sum = 0;
  for (Candidate& c : candidates) {
    c.relative = c.seconds / fastest;
    c.share = soft_minimum_term(c.relative);
    sum += c.share;
  }
  for (Candidate& c : candidates) c.share /= sum;
  return fastest * std::pow(sum, -1.0 / kTileSharpness);
}

std::optional<double> seconds_at_power_limit(const GemmShape& s, double sustained_flops) {
  if (sustained_flops <= 0) return std::nullopt;
  return s.flops() / sustained_flops;
}

/// The product that the algorithm works through, on the first `tiles` of kConvolutionTiles.
ProductStory convolution_product(const GemmShape& s, const ConvolutionGpu<double>& gpu,
                                 const ConvolutionParameters<double>& p, double log_slowdown,
                                 std::size_t tiles) {
  ProductStory story{.shape = s};
  for (std::size_t i = 0; i < tiles; ++i) {
    TileCandidate c = candidate(s, gpu.traits.sms, kConvolutionTiles[i], 1);
    c.charged_waves = quantised_waves(s, gpu.traits, p, kConvolutionTiles[i]);
    c.seconds = convolution_tile_seconds(s, gpu.traits, p, i);
    story.candidates.push_back(c);
  }
  story.tiles = compare(story.candidates);
  story.layout_slowdown = std::exp(log_slowdown);
  story.gpu_slowdown = std::exp(gpu.slowdown);
  story.at_power_limit = seconds_at_power_limit(s, gpu.sustained_flops);
  return story;
}

constexpr std::string_view kImplicit = "implicit_gemm", kFused = "fused_winograd",
                           kStaged = "staged_winograd";

ProductStory product_of(std::string_view algorithm, const ConvolutionShape& shape,
                        const ConvolutionGpu<double>& gpu, const ConvolutionParameters<double>& p) {
  constexpr std::size_t kAll = kConvolutionTiles.size();
  if (algorithm == kImplicit)
    return convolution_product(implicit_gemm_product(shape), gpu, p, p.implicit, kAll);
  if (algorithm == kFused)
    return convolution_product(fused_winograd_product(shape, gpu.traits), gpu, p, p.fused, 1);
  return convolution_product(staged_winograd_product(shape), gpu, p, 0, kAll);
}

}  // namespace

double ProductStory::compute_seconds() const {
  if (!at_power_limit) return unlimited();
  return smooth_max(unlimited(), *at_power_limit, power_sharpness);
}

ProductStory gemm_story(const GemmShape& s, const GpuTraits& gpu, const GemmWeights& weights,
                        const GemmSlowdown& slowdown) {
  const TileMenu<double>& menu = weights.menu(gpu);
  ProductStory story{.shape = s};
  for (std::size_t i = 0; i < kGemmTiles.size(); ++i) {
    const double unsplit = wave_count(s, kGemmTiles[i], 1, gpu.sms);
    for (const int split : kSplits) {
      if (!split_possible(s, unsplit, split)) break;  // nor is any larger one
      TileCandidate c = candidate(s, gpu.sms, kGemmTiles[i], split);
      const double soft = std::max(c.waves, 1.0);
      c.charged_waves = menu.quantisation * (std::ceil(c.waves) - soft) + soft;
      c.seconds = tile_seconds(s, gpu, weights.shared, menu, i, split);
      story.candidates.push_back(c);
    }
  }
  story.tiles = compare(story.candidates);
  story.row_slowdown = row_slowdown(s, gpu, weights.shared);
  story.layout_slowdown = std::exp(slowdown.layout);
  story.gpu_slowdown = std::exp(slowdown.gpu);
  story.at_power_limit = seconds_at_power_limit(s, slowdown.sustained_flops);
  return story;
}

ConvolutionStory convolution_story(const ConvolutionShape& shape, const ConvolutionGpu<double>& gpu,
                                   const ConvolutionParameters<double>& p) {
  ConvolutionStory story;
  story.algorithms.push_back({.name = kImplicit, .terms = implicit_gemm(shape, gpu, p)});
  if (shape.winograd()) {
    story.algorithms.push_back({.name = kFused, .terms = fused_winograd(shape, gpu, p)});
    story.algorithms.push_back({.name = kStaged, .terms = staged_winograd(shape, gpu, p)});
  }
  for (AlgorithmCandidate& c : story.algorithms) c.seconds = c.terms.seconds(p);
  story.seconds = compare(story.algorithms);
  story.product = product_of(story.algorithms.front().name, shape, gpu, p);
  return story;
}

}  // namespace tessera
