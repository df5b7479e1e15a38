// How long one prediction takes. Every benchmark walks through kernels of different sizes; the last
// looks them up as sim/plan does, which predicts every distinct kernel of a step once.
#include <functional>
#include <map>
#include <vector>

#include <benchmark/benchmark.h>

#include "predictor/kernel_predictor.h"
#include "predictor/weights/weights.h"
#include "tests/predictor/tensor/half_gpus.h"
#include "tests/predictor/test_kernels.h"

namespace tessera {
namespace {

using KernelOfStep = std::function<Kernel(std::int64_t step)>;

std::vector<Kernel> sizes(const KernelOfStep& kernel) {
  std::vector<Kernel> kernels;
  for (std::int64_t step = 1; step <= 128; ++step) kernels.push_back(kernel(step));
  return kernels;
}

/// A layer of gpt2-large at 64 to 8192 tokens.
Kernel linear(std::int64_t step) {
  return linear_kernel(64 * step, 3840, 1280);
}
/// Fewer tiles than SMs, so that a split contraction competes.
Kernel small_linear(std::int64_t step) {
  return linear_kernel(step, 768, 3072);
}
Kernel scores(std::int64_t step) {
  return batched_kernel(80, 8 * step, 8 * step, 64);
}
Kernel elementwise(std::int64_t step) {
  return row_kernel(KernelKind::elementwise, 64 * step, 5120);
}
Kernel softmax(std::int64_t step) {
  return row_kernel(KernelKind::softmax, 1280 * step, 8 * step);
}

Kernel bf16_linear(std::int64_t step) {
  Kernel kernel = linear(step);
  kernel.precision = Precision::bf16;
  return kernel;
}
Kernel attention(std::int64_t step) {
  Kernel kernel;
  kernel.kind = KernelKind::attention;
  kernel.precision = Precision::bf16;
  kernel.attention = {.implementation = AttentionImplementation::flash3,
                      .heads = 32,
                      .kv_heads = 8,
                      .seq_q = 64 * step,
                      .seq_kv = 64 * step,
                      .head_dim = 128};
  return kernel;
}

std::unique_ptr<KernelPredictor> h100(PredictorForm form) {
  const PredictorWeights weights = load_weights(TESSERA_SOURCE_DIR "/predictor/weights/tessera.pb");
  return make_predictor(form, half_test_gpu("H100-SXM5-80GB"), weights);
}

void predict(benchmark::State& state, PredictorForm form, Kernel (*kernel)(std::int64_t step)) {
  const auto predictor = h100(form);
  const std::vector<Kernel> kernels = sizes(kernel);
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(predictor->predict(kernels[i]));
    i = (i + 1) % kernels.size();
  }
  state.SetItemsProcessed(state.iterations());
}

void look_up(benchmark::State& state) {
  const auto predictor = h100(PredictorForm::tessera);
  const std::vector<Kernel> kernels = sizes(linear);
  std::map<Kernel, KernelPrediction> predictions;
  for (const Kernel& kernel : kernels) predictions.emplace(kernel, predictor->predict(kernel));
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(predictions.find(kernels[i])->second.duration);
    i = (i + 1) % kernels.size();
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(predict, tessera_gemm, PredictorForm::tessera, linear);
BENCHMARK_CAPTURE(predict, tessera_small_gemm, PredictorForm::tessera, small_linear);
BENCHMARK_CAPTURE(predict, tessera_batched_gemm, PredictorForm::tessera, scores);
BENCHMARK_CAPTURE(predict, tessera_bf16_gemm, PredictorForm::tessera, bf16_linear);
BENCHMARK_CAPTURE(predict, tessera_attention, PredictorForm::tessera, attention);
BENCHMARK_CAPTURE(predict, tessera_elementwise, PredictorForm::tessera, elementwise);
BENCHMARK_CAPTURE(predict, tessera_softmax, PredictorForm::tessera, softmax);
BENCHMARK_CAPTURE(predict, neusight_gemm, PredictorForm::neusight, linear);
BENCHMARK_CAPTURE(predict, roofline_gemm, PredictorForm::roofline, linear);
BENCHMARK(look_up);

}  // namespace
}  // namespace tessera

BENCHMARK_MAIN();
