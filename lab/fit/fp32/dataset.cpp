#include "lab/fit/fp32/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "hw/units/input_error.h"
#include "lab/fit/fp32/call_weight.h"
#include "lab/fit/fp32/octaves.h"

namespace tessera {
namespace {

// Linear rows of a sound session reach 0.8-1.2 of the efficiency of bmm rows; below this the
// session itself is odd (other library heuristics or clocks).
constexpr double kAnomalousLinearRatio = 0.5;
constexpr double kLargeGemmSeconds = 1e-3;
constexpr std::int64_t kLargeGemmExtent = 256;

// Sustained rates of power-limited cards are read from calls of 20-300 ms, what other cards hold
// without a limit from calls of 5 ms and longer.
constexpr double kSettledFrom = 5e-3;    // [s]
constexpr double kPowerLimitedTdp = 75;  // [W]
constexpr double kSustainedFrom = 20e-3;
constexpr double kSustainedUpTo = 300e-3;
// Quantile of the rates that counts as what good shapes reach.
constexpr double kGoodShapes = 0.9;

/// Operators that stand for the memory-bound classes: three operands, two operands, reductions.
constexpr std::array<MeasuredOp, 4> kMemoryOps{MeasuredOp::add, MeasuredOp::gelu,
                                               MeasuredOp::softmax, MeasuredOp::layer_norm};

bool is_gemm(const KernelMeasurement& row) {
  return row.op == MeasuredOp::linear || row.op == MeasuredOp::bmm;
}

double flops_of(const KernelMeasurement& row) {
  return 2.0 * static_cast<double>(row.batch) * static_cast<double>(row.m) *
         static_cast<double>(row.n) * static_cast<double>(row.k);
}

bool is_large(const KernelMeasurement& row) {
  return is_gemm(row) && std::min({row.m, row.n, row.k}) >= kLargeGemmExtent;
}

/// 0 for no values.
double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto place = std::min(values.size() - 1,
                              static_cast<std::size_t>(share * static_cast<double>(values.size())));
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

/// Rates of the large products of `op` between two durations [FLOP/s].
std::vector<double> rates(const GpuData& gpu, MeasuredOp op, double from, double up_to) {
  std::vector<double> rates;
  for (const KernelMeasurement* row : gpu.rows) {
    const double seconds = row->latency_us * 1e-6;
    if (row->op != op || !is_large(*row) || seconds < from || seconds > up_to) continue;
    rates.push_back(flops_of(*row) / seconds);
  }
  return rates;
}

/// 0 if there are none.
double median_rate(const GpuData& gpu, MeasuredOp op, double from, double up_to) {
  return quantile(rates(gpu, op, from, up_to), 0.5);
}

bool linear_is_anomalous(const GpuData& gpu) {
  const double linear = median_rate(gpu, MeasuredOp::linear, kLargeGemmSeconds, 1e9);
  const double bmm = median_rate(gpu, MeasuredOp::bmm, kLargeGemmSeconds, 1e9);
  return linear > 0 && bmm > 0 && linear < kAnomalousLinearRatio * bmm;
}

/// What good shapes hold once the card has settled, geometric mean over the sessions (linear and
/// bmm were timed apart): a limit is the envelope of the rates, poor shapes stay below it.
double measured_power_limit(const GpuData& gpu) {
  if (gpu.traits.tdp <= 0 || gpu.traits.tdp > kPowerLimitedTdp) return 0;
  double logs = 0, sessions = 0;
  for (const MeasuredOp op : {MeasuredOp::linear, MeasuredOp::bmm}) {
    if (op == MeasuredOp::linear && gpu.linear_anomalous) continue;
    const double rate = quantile(rates(gpu, op, kSustainedFrom, kSustainedUpTo), kGoodShapes);
    if (rate <= 0) continue;
    logs += std::log(rate);
    sessions += 1;
  }
  return sessions > 0 ? std::exp(logs / sessions) : 0;
}

/// What good shapes reach for as long as a power limit would need to bite.
double reached_rate(const GpuData& gpu) {
  double best = 0;
  for (const MeasuredOp op : {MeasuredOp::linear, MeasuredOp::bmm})
    best = std::max(best, quantile(rates(gpu, op, kSettledFrom, kSustainedUpTo), kGoodShapes));
  return best;
}

std::size_t gpu_position(std::vector<GpuData>& gpus, const std::string& id,
                         const GpuLookup& lookup) {
  const auto found = std::ranges::find_if(gpus, [&](const GpuData& g) { return g.spec.id == id; });
  if (found != gpus.end()) return static_cast<std::size_t>(found - gpus.begin());
  const GpuSpec spec = lookup(id);
  gpus.push_back({.spec = spec, .traits = gpu_traits(spec)});
  return gpus.size() - 1;
}

void refuse_held_out(const MeasurementFile& file, const GpuLookup& lookup) {
  std::vector<Problem> problems;
  for (const std::string& id : file.gpus) {
    if (!held_out_from_training(lookup(id))) continue;
    problems.push_back(
        {.where = file.path.string(),
         .what = "holds rows of " + id,
         .hint =
             "the FP32 model is never trained on A100 with 80 GB or on GPUs after Ampere, which "
             "judge it; remove these rows"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace

bool held_out_from_training(const GpuSpec& gpu) {
  switch (gpu.architecture) {
    case Architecture::pascal:
    case Architecture::volta:
    case Architecture::turing:
    case Architecture::cdna1:
    case Architecture::cdna2:
      return false;
    case Architecture::ampere:
      return gpu.compute_capability == "8.0" && gpu.memory.value() > (std::int64_t{60} << 30);
    default:
      return true;
  }
}

std::vector<GpuData> training_data(const MeasurementFile& file, const GpuLookup& lookup) {
  refuse_held_out(file, lookup);
  std::vector<GpuData> gpus;
  for (const KernelMeasurement& row : file.rows) {
    if (!row.train || row.latency_us <= 0) continue;
    gpus[gpu_position(gpus, file.gpus[row.gpu], lookup)].rows.push_back(&row);
  }
  if (gpus.empty())
    throw InputError({.where = file.path.string(),
                      .what = "has no row with split = train and a latency",
                      .hint = "training uses such rows only"});
  for (GpuData& gpu : gpus) {
    gpu.linear_anomalous = linear_is_anomalous(gpu);
    gpu.sustained_flops = measured_power_limit(gpu);
    gpu.reached_flops = reached_rate(gpu);
  }
  return gpus;
}

double fastest_seconds(const GpuData& gpu, MeasuredOp op) {
  std::vector<double> seconds;
  for (const KernelMeasurement* row : gpu.rows)
    if (row->op == op) seconds.push_back(row->latency_us * 1e-6);
  if (seconds.empty()) return 40e-6;
  const auto low = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 100);
  std::nth_element(seconds.begin(), low, seconds.end());
  return *low;
}

std::vector<GemmSample> gemm_samples(const GpuData& gpu, int number, MeasuredOp op,
                                     LeftOutIngredient without) {
  std::vector<GemmSample> samples;
  const bool anomalous = op == MeasuredOp::linear && gpu.linear_anomalous;
  if (anomalous && without == Ingredient::anomalous_short) return samples;
  const bool all_calls = without == Ingredient::short_calls;
  const double floor = fastest_seconds(gpu, op);
  for (const KernelMeasurement* row : rows_over_octaves(gpu, op)) {
    const double seconds = row->latency_us * 1e-6;
    if (anomalous && seconds > kLargeGemmSeconds) continue;
    if (!all_calls && feels_power_limit(seconds, gpu.sustained_flops)) continue;
    samples.push_back({.gpu = number,
                       .shape = gemm_shape(kernel_of(*row)),
                       .seconds = seconds,
                       .weight = call_weight(seconds, floor)});
  }
  return samples;
}

std::vector<TrafficSample> memory_samples(const GpuData& gpu, int number) {
  std::vector<TrafficSample> samples;
  for (const MeasuredOp op : kMemoryOps) {
    const double floor = fastest_seconds(gpu, op);
    for (const KernelMeasurement* row : rows_over_octaves(gpu, op)) {
      const Kernel kernel = kernel_of(*row);
      const double seconds = row->latency_us * 1e-6;
      samples.push_back({.gpu = number,
                         .shape = memory_shape(kernel),
                         .seconds = seconds,
                         .weight = call_weight(seconds, floor)});
    }
  }
  return samples;
}

}  // namespace tessera
