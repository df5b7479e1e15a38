#include "predictor/training/train.h"

#include <algorithm>
#include <cmath>

#include "hw/units/input_error.h"
#include "predictor/gpu_effects.h"
#include "predictor/training/conv_training.h"
#include "predictor/training/logo.h"
#include "predictor/training/neusight_training.h"

namespace tessera {
namespace {

GemmFit fit_gemm_class(const std::vector<const GpuData*>& gpus, MeasuredOp op) {
  std::vector<GemmFitGpu> fit_gpus;
  std::vector<GemmSample> samples;
  for (const GpuData* gpu : gpus) {
    const auto added = gemm_samples(*gpu, static_cast<int>(fit_gpus.size()), op);
    samples.insert(samples.end(), added.begin(), added.end());
    fit_gpus.push_back({.traits = gpu->traits, .floor_seconds = fastest_seconds(*gpu, op)});
  }
  return fit_gemm(fit_gpus, samples);
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

/// Geometric mean over the power-limited cards; 0 where there is none.
double fit_power_kappa(const std::vector<const GpuData*>& gpus) {
  double logs = 0, count = 0;
  for (const GpuData* gpu : gpus) {
    if (gpu->sustained_flops <= 0) continue;
    logs +=
        std::log(power_kappa(gpu->sustained_flops, gpu->traits.tdp, gpu->traits.efficiency_steps));
    count += 1;
  }
  return count > 0 ? std::exp(logs / count) : 0;
}

TrainedGpu trained_gpu(const GpuData& gpu) {
  return {.effect = {.gpu = gpu.spec.id,
                     .sustained_flops = gpu.sustained_flops,
                     .provenance = EffectProvenance::measured,
                     .reason = "fitted to its training kernels"},
          .die = die_of(gpu.spec),
          .lanes_per_sm = gpu.traits.lanes_per_sm,
          .efficiency_steps = gpu.traits.efficiency_steps,
          .hbm = gpu.traits.hbm,
          .tdp = gpu.traits.tdp};
}

/// A GPU without usable linear rows takes its slowdown from batched products plus the mean
/// difference between the two on the other GPUs.
void complete_linear_effects(const std::vector<const GpuData*>& gpus, PredictorWeights& weights) {
  double difference = 0, count = 0;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    if (gpus[g]->linear_anomalous) continue;
    const GpuEffect& effect = weights.gpus[g].effect;
    difference += effect.gemm_slowdown - effect.batched_slowdown;
    count += 1;
  }
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    if (!gpus[g]->linear_anomalous) continue;
    GpuEffect& effect = weights.gpus[g].effect;
    effect.gemm_slowdown = effect.batched_slowdown + (count > 0 ? difference / count : 0);
    effect.floors.linear = fastest_seconds(*gpus[g], MeasuredOp::linear);
    effect.reason += "; linear rows left out (anomalous)";
  }
}

std::filesystem::path data_file(const std::filesystem::path& data_dir) {
  const auto nested = data_dir / "kernels" / "fp32.csv";
  return std::filesystem::exists(nested) ? nested : data_dir / "fp32.csv";
}

std::int64_t training_rows(const std::vector<GpuData>& gpus) {
  std::int64_t rows = 0;
  for (const GpuData& gpu : gpus) rows += static_cast<std::int64_t>(gpu.rows.size());
  return rows;
}

TrainingRange training_range(const std::vector<const GpuData*>& gpus) {
  TrainingRange range;
  for (const GpuData* gpu : gpus) {
    for (const KernelMeasurement* row : gpu->rows) range.include(kernel_of(*row));
  }
  return range;
}

}  // namespace

TrainingReport fit_parametric(const std::vector<const GpuData*>& gpus) {
  const GemmFit linear = fit_gemm_class(gpus, MeasuredOp::linear);
  const GemmFit batched = fit_gemm_class(gpus, MeasuredOp::bmm);
  const MemoryFit memory = fit_memory_classes(gpus);
  TrainingReport report;
  PredictorWeights& weights = report.weights;
  weights.gemm = linear.weights;
  weights.batched = batched.weights;
  weights.memory = memory.shared;
  weights.power_kappa = fit_power_kappa(gpus);
  weights.range = training_range(gpus);
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    TrainedGpu gpu = trained_gpu(*gpus[g]);
    gpu.effect.gemm_slowdown = linear.slowdown[g];
    gpu.effect.batched_slowdown = batched.slowdown[g];
    gpu.effect.bandwidth_slowdown = memory.slowdown[g];
    gpu.effect.floors = {linear.floor[g], batched.floor[g], memory.floor[g][0], memory.floor[g][1],
                         memory.floor[g][2]};
    weights.gpus.push_back(gpu);
    if (gpus[g]->linear_anomalous) report.anomalous_linear.push_back(gpus[g]->spec.id);
  }
  complete_linear_effects(gpus, weights);
  report.convolution_mean_abs_log_error = train_convolutions(gpus, weights);
  report.gemm_mean_abs_log_error = linear.mean_absolute;
  report.batched_mean_abs_log_error = batched.mean_absolute;
  report.memory_mean_abs_log_error = memory.mean_absolute;
  return report;
}

TrainingReport train(const std::filesystem::path& data_dir, const TrainOptions& options,
                     const GpuLookup& lookup) {
  const MeasurementFile file = read_measurements(data_file(data_dir));
  std::vector<GpuData> data = training_data(file, lookup);
  const std::int64_t rows = training_rows(data);
  const auto convolutions = add_convolutions(file.path.parent_path(), lookup, data);
  std::vector<const GpuData*> gpus;
  for (const GpuData& gpu : data) gpus.push_back(&gpu);
  TrainingReport report = fit_parametric(gpus);
  PredictorWeights& weights = report.weights;
  weights.seed = options.seed;
  weights.data.push_back(
      {.file = file.path.filename().string(), .fnv1a = fnv1a(*file.text), .rows = rows});
  if (convolutions)
    weights.data.push_back({.file = convolutions->file.path.filename().string(),
                            .fnv1a = fnv1a(*convolutions->file.text),
                            .rows = convolutions->rows});
  if (options.neusight) weights.neusight = train_neusight(gpus, options.seed);
  if (options.leave_one_out) weights.logo = leave_one_gpu_out(data, options);
  return report;
}

}  // namespace tessera
