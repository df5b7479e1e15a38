#include "predictor/gpu_effects.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace tessera {
namespace {

// What 128 FP32 lanes on one shared memory and issue port cost a GEMM against 64, where no pair of
// GPUs tells: an 8x8 micro-tile step issues 64 FFMA and about 6 other instructions, log(70/64).
constexpr double kDerivedWideSmLoss = 0.09;
constexpr int kWideSm = 128;
// Power that does no arithmetic (memory, leakage, fans) [W].
constexpr double kIdlePower = 10;
// FP32 work per joule per generation: NVIDIA states 1.5 for Volta against Pascal.
constexpr double kEfficiencyStep = 1.5;

template <class Value>
double mean_over(const std::vector<TrainedGpu>& gpus,
                 const std::function<bool(const TrainedGpu&)>& chosen, Value value) {
  double sum = 0, count = 0;
  for (const TrainedGpu& gpu : gpus) {
    if (!chosen(gpu)) continue;
    sum += value(gpu);
    count += 1;
  }
  return count > 0 ? sum / count : std::nan("");
}

/// Mean over the GPUs that `preferred` picks, or over all where it picks none.
template <class Value>
double mean_preferring(const std::vector<TrainedGpu>& gpus,
                       const std::function<bool(const TrainedGpu&)>& preferred, Value value) {
  const double mean = mean_over(gpus, preferred, value);
  return std::isnan(mean) ? mean_over(
                                gpus, [](const TrainedGpu&) { return true; }, value)
                          : mean;
}

LaunchFloors mean_floors(const std::vector<TrainedGpu>& gpus) {
  const auto mean = [&](double LaunchFloors::*floor) {
    return mean_preferring(
        gpus, [](const TrainedGpu&) { return true; },
        [&](const TrainedGpu& gpu) { return gpu.effect.floors.*floor; });
  };
  return {.linear = mean(&LaunchFloors::linear),
          .batched = mean(&LaunchFloors::batched),
          .elementwise = mean(&LaunchFloors::elementwise),
          .softmax = mean(&LaunchFloors::softmax),
          .layer_norm = mean(&LaunchFloors::layer_norm)};
}

bool is_wide(const TrainedGpu& gpu) {
  return gpu.lanes_per_sm == kWideSm;
}

/// Pascal runs other GEMM kernels and reaches memory differently than everything since.
bool is_pascal(const TrainedGpu& gpu) {
  return gpu.efficiency_steps == 0;
}

/// Log GEMM slowdown of wide SMs: batched products of P4 against P100, which share generation and
/// kernels; derived where one of them is missing.
double wide_sm_loss(const std::vector<TrainedGpu>& gpus) {
  const auto batched = [](const TrainedGpu& g) { return g.effect.batched_slowdown; };
  const auto wide = [](const TrainedGpu& g) { return is_pascal(g) && is_wide(g); };
  const auto narrow = [](const TrainedGpu& g) { return is_pascal(g) && !is_wide(g); };
  const double loss = mean_over(gpus, wide, batched) - mean_over(gpus, narrow, batched);
  return std::isnan(loss) ? kDerivedWideSmLoss : loss;
}

/// Mean over the measured GPUs without a power limit, those since Volta preferred, each with the
/// loss of wide SMs taken out; plus that loss where `traits` has wide SMs.
double gemm_slowdown_by_rule(const GpuTraits& traits, const PredictorWeights& weights,
                             double GpuEffect::*slowdown) {
  const double loss = wide_sm_loss(weights.gpus);
  const auto reference = [](const TrainedGpu& g) {
    return g.effect.sustained_flops == 0 && !is_pascal(g);
  };
  const double narrow = mean_preferring(weights.gpus, reference, [&](const TrainedGpu& g) {
    return g.effect.*slowdown - (is_wide(g) ? loss : 0);
  });
  return narrow + (traits.lanes_per_sm == kWideSm ? loss : 0);
}

/// Mean over the measured GPUs with the same kind of memory on the same side of Volta, which
/// renewed the SM's path to memory; over those with the same kind of memory where there is none.
std::array<double, kMemoryClasses> bandwidth_by_rule(const GpuTraits& traits,
                                                     const PredictorWeights& weights) {
  const auto same_memory = [&](const TrainedGpu& g) { return g.hbm == traits.hbm; };
  const auto same_era = [&](const TrainedGpu& g) {
    return same_memory(g) && (g.efficiency_steps > 0) == (traits.efficiency_steps > 0);
  };
  const bool alone = std::ranges::none_of(weights.gpus, same_era);
  std::array<double, kMemoryClasses> slowdown{};
  for (std::size_t c = 0; c < kMemoryClasses; ++c) {
    const auto own = [&](const TrainedGpu& g) { return g.effect.bandwidth_slowdown[c]; };
    slowdown[c] = alone ? mean_preferring(weights.gpus, same_memory, own)
                        : mean_preferring(weights.gpus, same_era, own);
  }
  return slowdown;
}

GpuEffect effect_by_rule(const GpuSpec& gpu, const PredictorWeights& weights) {
  const GpuTraits traits = gpu_traits(gpu);
  const double clock = -std::log(traits.dense_clock_share);
  return {
      .gpu = gpu.id,
      .gemm_slowdown = gemm_slowdown_by_rule(traits, weights, &GpuEffect::gemm_slowdown) + clock,
      .batched_slowdown =
          gemm_slowdown_by_rule(traits, weights, &GpuEffect::batched_slowdown) + clock,
      .bandwidth_slowdown = bandwidth_by_rule(traits, weights),
      .sustained_flops = sustained_flops(weights.power_kappa, traits.tdp, traits.efficiency_steps),
      .floors = mean_floors(weights.gpus),
      .provenance = EffectProvenance::rule,
      .reason =
          "GEMM as measured GPUs since Volta, slower where 128 lanes share an SM, at the clock "
          "of dense load; bandwidth as GPUs with the same kind of memory; power limit from TDP"};
}

}  // namespace

double sustained_flops(double kappa, double tdp_watts, int efficiency_steps) {
  if (kappa <= 0 || tdp_watts <= kIdlePower) return 0;
  return kappa * (tdp_watts - kIdlePower) * std::pow(kEfficiencyStep, efficiency_steps);
}

double power_kappa(double flops, double tdp_watts, int efficiency_steps) {
  return flops / ((tdp_watts - kIdlePower) * std::pow(kEfficiencyStep, efficiency_steps));
}

GpuEffect effect_for(const GpuSpec& gpu, const PredictorWeights& weights) {
  const auto own = std::ranges::find_if(
      weights.gpus, [&](const TrainedGpu& g) { return g.effect.gpu == gpu.id; });
  if (own != weights.gpus.end()) return own->effect;
  const std::string die = die_of(gpu);
  const auto twin = std::ranges::find_if(
      weights.gpus, [&](const TrainedGpu& g) { return !die.empty() && g.die == die; });
  if (twin == weights.gpus.end()) return effect_by_rule(gpu, weights);
  GpuEffect effect = twin->effect;
  effect.provenance = EffectProvenance::twin_die;
  effect.reason = "same die as " + effect.gpu;
  effect.gpu = gpu.id;
  return effect;
}

}  // namespace tessera
