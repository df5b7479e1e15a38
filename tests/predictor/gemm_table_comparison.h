#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "predictor/fp32/gemm_table.h"
#include "predictor/gpu/gpu_effects.h"
#include "tests/predictor/test_kernels.h"

namespace tessera {

/// Products of all sizes and orders, a third of them whole numbers of tiles. Same seed, same list.
inline std::vector<GemmShape> random_gemm_shapes(int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](int octaves) {
    const std::int64_t octave = std::int64_t{1} << (random() % octaves);
    return octave + static_cast<std::int64_t>(random() % octave);
  };
  std::vector<GemmShape> shapes;
  for (int i = 0; i < count; ++i) {
    const std::int64_t unit = random() % 3 == 0 ? 32 : 1;
    Kernel kernel = batched_kernel(random() % 2 == 0 ? 1 : up_to(10), unit * up_to(13),
                                   unit * up_to(13), up_to(17));
    kernel.layout = static_cast<GemmLayout>(random() % 3);
    shapes.push_back(gemm_shape(kernel));
  }
  return shapes;
}

/// Largest relative difference of a duration or a compute time between the compiled model of `gpu`
/// and the formulas that are trained, over `shapes`; infinite where one of them is no number.
inline double worst_gemm_table_difference(const GpuSpec& gpu, const PredictorWeights& weights,
                                          const std::vector<GemmShape>& shapes) {
  const GpuTraits traits = gpu_traits(gpu);
  const GpuEffect effect = effect_for(gpu, weights);
  double worst = 0;
  const auto compare = [&](double a, double b) {
    const double difference = std::abs(a / b - 1);
    worst = std::isnan(difference) ? HUGE_VAL : std::max(worst, difference);
  };
  for (const GemmWeights* gemm : {&weights.gemm, &weights.batched}) {
    const double slowdown = gemm == &weights.gemm ? effect.gemm_slowdown : effect.batched_slowdown;
    const GemmTable table(*gemm, traits, slowdown, effect.sustained_flops);
    for (const GemmShape& shape : shapes) {
      const KernelPrediction fast = table.predict(shape);
      const auto& menu = gemm->menu(traits);
      const double compute = limited_by_power(
          shape, std::exp(slowdown) * gemm_compute_seconds(shape, traits, gemm->shared, menu),
          effect.sustained_flops);
      const double seconds =
          gemm_seconds(shape, traits, gemm->shared, menu, slowdown, effect.sustained_flops);
      compare(fast.duration.value(), seconds);
      compare(fast.compute_time.value(), compute);
    }
  }
  return worst;
}

}  // namespace tessera
