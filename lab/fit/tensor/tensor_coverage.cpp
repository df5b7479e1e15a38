#include "lab/fit/tensor/tensor_coverage.h"

#include <cmath>
#include <map>

#include "predictor/tensor/tensor_gemm_predictor.h"

namespace tessera {
namespace {

constexpr double kLong = 50e-6;  // [s]

Kernel kernel_of(const TensorSample& sample, Precision precision) {
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.precision = precision;
  kernel.m = static_cast<std::int64_t>(sample.shape.m);
  kernel.n = static_cast<std::int64_t>(sample.shape.n);
  kernel.k = static_cast<std::int64_t>(sample.shape.k);
  kernel.flops = Flops(sample.shape.flops());
  kernel.bytes_read = Bytes(static_cast<std::int64_t>(sample.shape.bytes));
  return kernel;
}

struct Share {
  std::int64_t n = 0, inside = 0;
  void add(bool is_inside) {
    ++n;
    inside += is_inside ? 1 : 0;
  }
  double percent() const {
    return n > 0 ? 100.0 * static_cast<double>(inside) / static_cast<double>(n) : 0;
  }
};

}  // namespace

TensorCoverage tensor_coverage(const TensorData& data, const TensorWeights& weights, int gpu) {
  std::map<Precision, TensorGemmPredictor> predictors;
  Share all, longer;
  TensorCoverage coverage{.gpu = data.gpus[gpu].id};
  for (const TensorSample& sample : data.samples) {
    const TensorStack& stack = data.stacks[sample.stack];
    if (stack.gpu != gpu || !held_out(sample.shape, TensorHoldout::shapes)) continue;
    const TensorGemmPredictor& predictor =
        predictors.try_emplace(stack.precision, data.gpus[gpu], stack.precision, weights)
            .first->second;
    const KernelPrediction prediction = predictor.predict(kernel_of(sample, stack.precision));
    const double timed = (prediction.duration + predictor.launch_seconds()).value();
    const double half_width = log_half_width(prediction.spread);
    const bool inside = std::abs(std::log(timed / sample.seconds)) <= half_width;
    coverage.measured = predictor.effect().measured;
    coverage.mean_half_width += half_width;
    all.add(inside);
    if (sample.seconds >= kLong) longer.add(inside);
  }
  coverage.n = all.n;
  coverage.inside_pct = all.percent();
  coverage.long_inside_pct = longer.percent();
  if (all.n > 0) coverage.mean_half_width /= static_cast<double>(all.n);
  return coverage;
}

}  // namespace tessera
