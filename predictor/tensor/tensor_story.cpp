#include "predictor/tensor/tensor_story.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

TileCandidate candidate(const TensorShape& s, const TensorTraits& gpu,
                        const TensorParameters<double>& p, double quantisation, std::size_t tile,
                        int split) {
  const TensorTileChoice choice = tensor_tile_choice(s, gpu, p, quantisation, tile, split);
  TileCandidate c{.tile = {kTensorTiles[tile].m, kTensorTiles[tile].n},
                  .split = split,
                  .waves = choice.waves,
                  .seconds = choice.seconds};
  c.blocks = tensor_blocks(s, kTensorTiles[tile]) * split;
  c.blocks_per_sm = std::ceil(c.waves);
  c.sm_utilization = c.waves / c.blocks_per_sm;
  const double soft = std::max(c.waves, 1.0);
  c.charged_waves = quantisation * (std::ceil(c.waves) - soft) + soft;
  return c;
}

void compare(std::vector<TileCandidate>& candidates) {
  std::ranges::stable_sort(candidates, {}, &TileCandidate::seconds);
  double sum = 0;
  for (TileCandidate& c : candidates) {
    c.relative = c.seconds / candidates.front().seconds;
    c.share = std::pow(c.relative, -kTensorTileSharpness);
    sum += c.share;
  }
  for (TileCandidate& c : candidates) c.share /= sum;
}

}  // namespace

ProductStory tensor_product_story(const Kernel& kernel, const TensorGemmPredictor& predictor) {
  const TensorShape s = tensor_shape(kernel);
  const TensorTraits& gpu = predictor.traits();
  const TensorEffect& effect = predictor.effect();
  const TensorParameters<double>& p = predictor.shared();
  ProductStory story{.shape = {.batch = s.batch, .m = s.m, .n = s.n, .k = s.k, .bytes = s.bytes}};
  for (std::size_t tile = 0; tile < kTensorTiles.size(); ++tile) {
    const double unsplit = tensor_blocks(s, kTensorTiles[tile]) / gpu.sms;
    for (const int split : kTensorSplits) {
      if (!tensor_split_possible(s, unsplit, split)) break;  // nor is any larger one
      story.candidates.push_back(candidate(s, gpu, p, effect.stack.quantisation, tile, split));
    }
  }
  compare(story.candidates);
  story.tiles = tensor_tile_seconds(s, gpu, p, effect.stack.quantisation);
  story.gpu_slowdown = std::exp(effect.gpu.compute + effect.stack.compute);
  story.at_power_limit = tensor_capped_seconds(s, gpu, effect.gpu, effect.stack);
  story.power_sharpness = kTensorCapSharpness;
  return story;
}

}  // namespace tessera
