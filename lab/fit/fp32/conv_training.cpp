#include "lab/fit/fp32/conv_training.h"

#include <algorithm>

#include "hw/units/input_error.h"
#include "lab/fit/fp32/call_weight.h"
#include "lab/fit/fp32/conv_fit.h"
#include "lab/fit/fp32/octaves.h"

namespace tessera {
namespace {

bool has_convolutions(const GpuData& gpu) {
  return std::ranges::any_of(
      gpu.rows, [](const KernelMeasurement* row) { return row->op == MeasuredOp::conv2d; });
}

/// The floor rises with every shape that a process tries, so only the very first calls show it.
double fastest_convolution(const GpuData& gpu) {
  double fastest = 1;
  for (const KernelMeasurement* row : gpu.rows)
    if (row->op == MeasuredOp::conv2d) fastest = std::min(fastest, row->latency_us * 1e-6);
  return fastest;
}

void add_samples(const GpuData& gpu, int number, double floor,
                 std::vector<ConvolutionSample>& samples) {
  for (const KernelMeasurement* row : rows_over_octaves(gpu, MeasuredOp::conv2d)) {
    const double seconds = row->latency_us * 1e-6;
    if (feels_power_limit(seconds, gpu.sustained_flops)) continue;
    samples.push_back({.gpu = number,
                       .shape = convolution_shape(kernel_of(*row)),
                       .seconds = seconds,
                       .earlier = row->earlier / 1000.0,
                       .weight = call_weight(seconds, floor)});
  }
}

GpuData* find_gpu(std::vector<GpuData>& gpus, const std::string& id) {
  const auto found = std::ranges::find_if(gpus, [&](const GpuData& g) { return g.spec.id == id; });
  return found == gpus.end() ? nullptr : &*found;
}

}  // namespace

std::optional<ConvolutionRows> add_convolutions(const std::filesystem::path& folder,
                                                const GpuLookup& lookup,
                                                std::vector<GpuData>& gpus) {
  const std::filesystem::path path = folder / "fp32_conv.csv";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  ConvolutionRows added{.file = read_measurements(path)};
  std::vector<Problem> problems;
  for (const GpuData& timed : training_data(added.file, lookup)) {
    GpuData* gpu = find_gpu(gpus, timed.spec.id);
    if (gpu == nullptr) {
      problems.push_back({.where = path.string(),
                          .what = "holds rows of " + timed.spec.id + ", fp32.csv has none",
                          .hint = "time its products too, or remove these rows"});
      continue;
    }
    gpu->rows.insert(gpu->rows.end(), timed.rows.begin(), timed.rows.end());
    added.rows += static_cast<std::int64_t>(timed.rows.size());
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return added;
}

void train_convolutions(const std::vector<const GpuData*>& gpus, PredictorWeights& weights) {
  std::vector<ConvolutionFitGpu> fit_gpus;
  std::vector<ConvolutionSample> samples;
  std::vector<GpuEffect*> effects;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    if (!has_convolutions(*gpus[g])) continue;
    const double floor = fastest_convolution(*gpus[g]);
    add_samples(*gpus[g], static_cast<int>(fit_gpus.size()), floor, samples);
    fit_gpus.push_back({.traits = gpus[g]->traits, .floor_seconds = floor});
    effects.push_back(&weights.gpus[g].effect);
  }
  if (samples.empty()) return;
  const ConvolutionFit fit = fit_convolution_model(fit_gpus, samples);
  ConvolutionWeights& trained = weights.convolution.emplace();
  trained.shared = fit.shared;
  const auto count = static_cast<double>(effects.size());
  for (std::size_t g = 0; g < effects.size(); ++g) {
    effects[g]->convolution_slowdown = fit.slowdown[g];
    effects[g]->floors.convolution = fit.floor[g];
    trained.shift += (fit.slowdown[g] - effects[g]->gemm_slowdown) / count;
    trained.floor_seconds += fit.floor[g] / count;
  }
}

}  // namespace tessera
