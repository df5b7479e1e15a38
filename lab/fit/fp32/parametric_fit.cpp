#include "lab/fit/fp32/parametric_fit.h"

#include "lab/fit/fp32/conv_training.h"
#include "lab/fit/fp32/gemm_fit.h"
#include "lab/fit/fp32/memory_fit.h"

namespace tessera {
namespace {

GemmFit fit_gemm_class(const std::vector<const GpuData*>& gpus, MeasuredOp op,
                       LeftOutIngredient without) {
  std::vector<GemmFitGpu> fit_gpus;
  std::vector<GemmSample> samples;
  for (const GpuData* gpu : gpus) {
    const auto added = gemm_samples(*gpu, static_cast<int>(fit_gpus.size()), op, without);
    samples.insert(samples.end(), added.begin(), added.end());
    fit_gpus.push_back({.traits = gpu->traits, .floor_seconds = fastest_seconds(*gpu, op)});
  }
  return fit_gemm(fit_gpus, samples, without);
}

MemoryFit fit_memory_classes(const std::vector<const GpuData*>& gpus) {
  std::vector<MemoryFitGpu> fit_gpus;
  std::vector<TrafficSample> samples;
  for (const GpuData* gpu : gpus) {
    const auto added = memory_samples(*gpu, static_cast<int>(fit_gpus.size()));
    samples.insert(samples.end(), added.begin(), added.end());
    fit_gpus.push_back({.traits = gpu->traits,
                        .floor_seconds = {fastest_seconds(*gpu, MeasuredOp::gelu),
                                          fastest_seconds(*gpu, MeasuredOp::softmax),
                                          fastest_seconds(*gpu, MeasuredOp::layer_norm)}});
  }
  return fit_memory(fit_gpus, samples);
}

TrainedGpu trained_gpu(const GpuData& gpu) {
  return {.effect = {.gpu = gpu.spec.id,
                     .sustained_flops = gpu.sustained_flops,
                     .provenance = EffectProvenance::measured,
                     .reason = "fitted to its training kernels"},
          .die = gpu.spec.die,
          .lanes_per_sm = gpu.traits.lanes_per_sm,
          .efficiency_steps = gpu.traits.efficiency_steps,
          .hbm = gpu.traits.hbm,
          .tdp = gpu.traits.tdp,
          .reached_flops = gpu.reached_flops};
}

/// A GPU without linear rows to fit takes its slowdown from batched products plus the mean
/// difference between the two on the other GPUs.
void complete_linear_effects(const std::vector<const GpuData*>& gpus, LeftOutIngredient without,
                             PredictorWeights& weights) {
  double difference = 0, count = 0;
  std::vector<std::size_t> incomplete;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    if (gemm_samples(*gpus[g], 0, MeasuredOp::linear, without).empty()) {
      incomplete.push_back(g);
      continue;
    }
    const GpuEffect& effect = weights.gpus[g].effect;
    difference += effect.gemm_slowdown - effect.batched_slowdown;
    count += 1;
  }
  for (const std::size_t g : incomplete) {
    GpuEffect& effect = weights.gpus[g].effect;
    effect.gemm_slowdown = effect.batched_slowdown + (count > 0 ? difference / count : 0);
    effect.floors.linear = fastest_seconds(*gpus[g], MeasuredOp::linear);
    effect.reason += "; linear layers from batched products";
  }
}

TrainingRange training_range(const std::vector<const GpuData*>& gpus) {
  TrainingRange range;
  for (const GpuData* gpu : gpus) {
    for (const KernelMeasurement* row : gpu->rows) range.include(kernel_of(*row));
  }
  return range;
}

}  // namespace

PredictorWeights fit_parametric(const std::vector<const GpuData*>& gpus,
                                LeftOutIngredient without) {
  const GemmFit linear = fit_gemm_class(gpus, MeasuredOp::linear, without);
  const GemmFit batched = fit_gemm_class(gpus, MeasuredOp::bmm, without);
  const MemoryFit memory = fit_memory_classes(gpus);
  PredictorWeights weights;
  weights.gemm = linear.weights;
  weights.batched = batched.weights;
  weights.memory = memory.shared;
  weights.range = training_range(gpus);
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    TrainedGpu gpu = trained_gpu(*gpus[g]);
    gpu.effect.gemm_slowdown = linear.slowdown[g];
    gpu.effect.batched_slowdown = batched.slowdown[g];
    gpu.effect.bandwidth_slowdown = memory.slowdown[g];
    gpu.effect.floors = {linear.floor[g], batched.floor[g], memory.floor[g][0], memory.floor[g][1],
                         memory.floor[g][2]};
    weights.gpus.push_back(gpu);
  }
  complete_linear_effects(gpus, without, weights);
  train_convolutions(gpus, weights);
  return weights;
}

}  // namespace tessera
