#include "predictor/gpu/gpu_effects.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "predictor/gpu/compute_rules.h"

namespace tessera {
namespace {

// Power that does no arithmetic (memory, leakage, fans) while clocks are up: the share of
// hw/power.h, but what T4 draws of its 70 W with a context and no kernel (nvidia-smi, recalled) at
// least [W].
constexpr double kIdleShare = 0.15;
constexpr double kIdleAtLeast = 26;
// A card of fewer watts clocks its SMs down until they no longer keep its memory busy: T4 and P4
// (70 and 75 W) reach .75 of the bandwidth, L4 (72 W) .78, A40 (300 W, check bits in its way) .83.
// The catalog has no card between 75 and 150 W.
constexpr double kFedFromWatts = 100;

/// Launch floors are the hosts', not the GPUs': one slow host must not raise them.
LaunchFloors median_floors(const std::vector<TrainedGpu>& gpus) {
  const auto median = [&](double LaunchFloors::*floor) {
    return median_over(gpus, [&](const TrainedGpu& gpu) { return gpu.effect.floors.*floor; });
  };
  return {.linear = median(&LaunchFloors::linear),
          .batched = median(&LaunchFloors::batched),
          .elementwise = median(&LaunchFloors::elementwise),
          .softmax = median(&LaunchFloors::softmax),
          .layer_norm = median(&LaunchFloors::layer_norm)};
}

/// Of a card since Volta with chips on the board, and enough power to keep them busy: as of stacked
/// memory, plus what moving check bits takes. NaN where no such GPU was measured.
double slowdown_of_chips(const GpuTraits& traits, const PredictorWeights& weights, std::size_t c) {
  constexpr double kWithCheckBits = 16.0 / 15;
  const auto stacked = [](const TrainedGpu& g) { return g.hbm && g.efficiency_steps > 0; };
  return mean_over(weights.gpus, stacked,
                   [&](const TrainedGpu& g) { return g.effect.bandwidth_slowdown[c]; }) +
         (traits.inline_ecc ? std::log(kWithCheckBits) : 0);
}

/// Mean over the measured GPUs with the same kind of memory on the same side of Volta, which
/// renewed the SM's path to memory; over those with the same kind of memory where there is none.
/// Those with chips on the board are cards of little power, which speak for such cards alone.
std::array<double, kMemoryClasses> bandwidth_by_rule(const GpuTraits& traits,
                                                     const PredictorWeights& weights) {
  const auto same_memory = [&](const TrainedGpu& g) { return g.hbm == traits.hbm; };
  const auto same_era = [&](const TrainedGpu& g) {
    return same_memory(g) && (g.efficiency_steps > 0) == (traits.efficiency_steps > 0);
  };
  const bool alone = std::ranges::none_of(weights.gpus, same_era);
  const bool weak = traits.tdp > 0 && traits.tdp < kFedFromWatts;
  const bool fed = !traits.hbm && traits.efficiency_steps > 0 && !weak;
  std::array<double, kMemoryClasses> slowdown{};
  for (std::size_t c = 0; c < kMemoryClasses; ++c) {
    const auto own = [&](const TrainedGpu& g) { return g.effect.bandwidth_slowdown[c]; };
    slowdown[c] = alone ? mean_preferring(weights.gpus, same_memory, own)
                        : mean_preferring(weights.gpus, same_era, own);
    const double chips = fed ? slowdown_of_chips(traits, weights, c) : std::nan("");
    if (!std::isnan(chips)) slowdown[c] = chips;
  }
  return slowdown;
}

/// `gpus` without the power-limited ones of generations that are farther from `traits` than the
/// nearest: gains of a generation are its vendor's words about the one before, and multiply.
std::vector<TrainedGpu> nearest_in_power(const GpuTraits& traits, std::vector<TrainedGpu> gpus) {
  const auto limited = [](const TrainedGpu& g) { return g.effect.sustained_flops > 0; };
  const auto away = [&](const TrainedGpu& g) {
    return std::abs(g.efficiency_steps - traits.efficiency_steps);
  };
  int nearest = std::numeric_limits<int>::max();
  for (const TrainedGpu& gpu : gpus)
    if (limited(gpu)) nearest = std::min(nearest, away(gpu));
  std::erase_if(gpus, [&](const TrainedGpu& g) { return limited(g) && away(g) > nearest; });
  return gpus;
}

/// Power-limited GPUs whose watts speak for `traits`: the predecessor where the rule asks for it.
std::vector<TrainedGpu> power_references(const GpuTraits& traits, const PredictorWeights& weights) {
  switch (weights.rule.compute) {
    case ComputeRule::median:
      return {};
    case ComputeRule::predecessor:
      return {predecessor_of(traits, weights.gpus)};
    default:
      return nearest_in_power(traits, weights.gpus);
  }
}

double sustained_by_rule(const GpuTraits& traits, const PredictorWeights& weights) {
  if (!weights.rule.power_limit) return 0;
  return sustained_flops(power_kappa(power_references(traits, weights)), traits.tdp,
                         traits.efficiency_steps);
}

/// The limit of a measured card: what its own session showed, drawn towards what all
/// power-limited cards have in common.
double sustained_of_measured(const TrainedGpu& gpu, const PredictorWeights& weights) {
  const double own = gpu.effect.sustained_flops;
  const double common = sustained_flops(power_kappa(weights.gpus), gpu.tdp, gpu.efficiency_steps);
  if (own <= 0 || common <= 0) return own;
  return own * std::pow(common / own, weights.rule.session_pooling);
}

GpuEffect effect_of_measured(const TrainedGpu& gpu, const PredictorWeights& weights) {
  GpuEffect effect = gpu.effect;
  effect.sustained_flops = sustained_of_measured(gpu, weights);
  return effect;
}

/// Of a description that keeps the id of a measured card and changes its power.
GpuEffect effect_at_tdp(const GpuSpec& gpu, const TrainedGpu& own,
                        const PredictorWeights& weights) {
  GpuEffect effect = effect_of_measured(own, weights);
  const auto watts = [&](double tdp) { return sustained_flops(1, tdp, own.efficiency_steps); };
  effect.sustained_flops = effect.sustained_flops > 0
                               ? effect.sustained_flops * watts(gpu.tdp.value()) / watts(own.tdp)
                               : sustained_by_rule(gpu_traits(gpu), weights);
  effect.provenance = EffectProvenance::twin_die;
  effect.reason = "same die as " + gpu.id + ", with another tdp than it was measured with";
  return effect;
}

}  // namespace

double sustained_flops(double kappa, double tdp_watts, int efficiency_steps) {
  const double idle = std::max(kIdleAtLeast, kIdleShare * tdp_watts);
  if (kappa <= 0 || tdp_watts <= idle) return 0;
  return kappa * (tdp_watts - idle) * efficiency_gain(efficiency_steps);
}

double power_kappa(const std::vector<TrainedGpu>& gpus) {
  double logs = 0, count = 0, proven = 0;
  for (const TrainedGpu& gpu : gpus) {
    const double unit = sustained_flops(1, gpu.tdp, gpu.efficiency_steps);
    if (unit <= 0) continue;
    if (gpu.effect.sustained_flops <= 0) {
      proven = std::max(proven, gpu.reached_flops / unit);
      continue;
    }
    logs += std::log(gpu.effect.sustained_flops / unit);
    count += 1;
  }
  return count > 0 ? std::max(std::exp(logs / count), proven) : 0;
}

GpuEffect effect_by_rule(const GpuSpec& gpu, const PredictorWeights& weights) {
  const GpuTraits traits = gpu_traits(gpu);
  return {.gpu = gpu.id,
          .gemm_slowdown = slowdown_by_rule(traits, weights, &GpuEffect::gemm_slowdown),
          .batched_slowdown = slowdown_by_rule(traits, weights, &GpuEffect::batched_slowdown),
          .bandwidth_slowdown = bandwidth_by_rule(traits, weights),
          .sustained_flops = sustained_by_rule(traits, weights),
          .floors = median_floors(weights.gpus),
          .provenance = EffectProvenance::rule,
          .reason = "by rule from measured GPUs (" + text_of(weights.rule) + ")"};
}

GpuEffect effect_for(const GpuSpec& gpu, const PredictorWeights& weights) {
  const auto own = std::ranges::find_if(
      weights.gpus, [&](const TrainedGpu& g) { return g.effect.gpu == gpu.id; });
  if (own != weights.gpus.end()) {
    const bool known = own->tdp > 0 && gpu.tdp.value() > 0;
    const bool other_tdp = known && std::abs(gpu.tdp.value() - own->tdp) > 0.5;  // [W]
    return other_tdp ? effect_at_tdp(gpu, *own, weights) : effect_of_measured(*own, weights);
  }
  const auto twin = std::ranges::find_if(
      weights.gpus, [&](const TrainedGpu& g) { return !gpu.die.empty() && g.die == gpu.die; });
  if (twin == weights.gpus.end()) return effect_by_rule(gpu, weights);
  GpuEffect effect = effect_of_measured(*twin, weights);
  effect.provenance = EffectProvenance::twin_die;
  effect.reason = "same die as " + effect.gpu;
  effect.gpu = gpu.id;
  return effect;
}

}  // namespace tessera
