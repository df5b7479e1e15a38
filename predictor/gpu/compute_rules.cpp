#include "predictor/gpu/compute_rules.h"

#include <algorithm>

namespace tessera {
namespace {

// What 128 FP32 lanes on one shared memory and issue port cost a GEMM against 64, where no pair of
// GPUs tells: an 8x8 micro-tile step issues 64 FFMA and about 6 other instructions, log(70/64).
constexpr double kDerivedWideSmLoss = 0.09;
constexpr int kWideSm = 128;
// Partial pooling: a generation's own mean gets n / (n + kGenerationPrior) of its distance from the
// common one. Between-GPU spread within and across generations taken as equal: five GPUs cannot
// tell more.
constexpr double kGenerationPrior = 1;

using Slowdown = double GpuEffect::*;

bool is_wide(const TrainedGpu& gpu) {
  return gpu.lanes_per_sm == kWideSm;
}

/// Pascal runs other GEMM kernels and reaches memory differently than everything since.
bool is_pascal(const TrainedGpu& gpu) {
  return gpu.efficiency_steps == 0;
}

bool is_unlimited(const TrainedGpu& gpu) {
  return gpu.effect.sustained_flops == 0;
}

/// Log slowdown of wide SMs: batched products of P4 against P100, which share generation and
/// kernels; derived where one of them is missing.
double wide_sm_loss(const std::vector<TrainedGpu>& gpus) {
  const auto batched = [](const TrainedGpu& g) { return g.effect.batched_slowdown; };
  const auto wide = [](const TrainedGpu& g) { return is_pascal(g) && is_wide(g); };
  const auto narrow = [](const TrainedGpu& g) { return is_pascal(g) && !is_wide(g); };
  const double loss = mean_over(gpus, wide, batched) - mean_over(gpus, narrow, batched);
  return std::isnan(loss) ? kDerivedWideSmLoss : loss;
}

/// Mean over the measured GPUs without a power limit, those since Volta preferred.
double common_slowdown(const std::vector<TrainedGpu>& gpus, Slowdown slowdown, double wide_loss) {
  const auto reference = [](const TrainedGpu& g) { return is_unlimited(g) && !is_pascal(g); };
  return mean_preferring(gpus, reference, [&](const TrainedGpu& g) {
    return g.effect.*slowdown - (is_wide(g) ? wide_loss : 0);
  });
}

/// Mean over all GPUs without a power limit, drawn towards those of the same generation.
double pooled_slowdown(const GpuTraits& traits, const std::vector<TrainedGpu>& gpus,
                       Slowdown slowdown, double wide_loss) {
  const auto narrow = [&](const TrainedGpu& g) {
    return g.effect.*slowdown - (is_wide(g) ? wide_loss : 0);
  };
  const double common = mean_preferring(gpus, is_unlimited, narrow);
  // Power-limited cards are throttled even in short calls: their slowdown is not the SM's alone.
  const auto same_generation = [&](const TrainedGpu& g) {
    return is_unlimited(g) && g.efficiency_steps == traits.efficiency_steps;
  };
  const double count = static_cast<double>(std::ranges::count_if(gpus, same_generation));
  if (count == 0) return common;
  const double own = mean_over(gpus, same_generation, narrow);
  return common + (own - common) * count / (count + kGenerationPrior);
}

}  // namespace

const TrainedGpu& predecessor_of(const GpuTraits& traits, const std::vector<TrainedGpu>& gpus) {
  const auto rank = [&](const TrainedGpu& g) {
    const bool earlier = g.efficiency_steps < traits.efficiency_steps;
    const bool sibling = g.efficiency_steps == traits.efficiency_steps;
    if (earlier && g.hbm == traits.hbm) return 100 + g.efficiency_steps;
    return (sibling ? 50 : 0) + g.efficiency_steps;
  };
  return *std::ranges::max_element(gpus, {}, rank);
}

double slowdown_by_rule(const GpuTraits& traits, const PredictorWeights& weights,
                        Slowdown slowdown) {
  const double clock = -std::log(traits.dense_clock_share);
  const double loss = wide_sm_loss(weights.gpus);
  const double own_loss = traits.lanes_per_sm == kWideSm ? loss : 0;
  switch (weights.rule.compute) {
    case ComputeRule::median:
      return median_over(weights.gpus, [&](const TrainedGpu& g) { return g.effect.*slowdown; }) +
             clock;
    case ComputeRule::predecessor:
      return predecessor_of(traits, weights.gpus).effect.*slowdown + clock;
    case ComputeRule::physical:
      return common_slowdown(weights.gpus, slowdown, loss) + own_loss + clock;
    case ComputeRule::pooled:
      break;
  }
  return pooled_slowdown(traits, weights.gpus, slowdown, loss) + own_loss + clock;
}

}  // namespace tessera
