// How fast kernels are predicted, without the memoisation of sim/plan.
#include <benchmark/benchmark.h>

#include "predictor/kernel_predictor.h"
#include "predictor/weights.h"
#include "tests/predictor/test_gpus.h"

namespace tessera {
namespace {

Kernel linear(std::int64_t m) {
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.m = m;
  kernel.n = 3840;
  kernel.k = 1280;
  kernel.flops = Flops(2.0 * static_cast<double>(m) * 3840 * 1280);
  kernel.bytes_read = Bytes(4 * (m * 1280 + 3840 * 1280));
  kernel.bytes_written = Bytes(4 * m * 3840);
  return kernel;
}

void predict_gemms(benchmark::State& state, PredictorForm form) {
  const PredictorWeights weights = load_weights(TESSERA_SOURCE_DIR "/predictor/weights/fp32.pb");
  const auto predictor = make_predictor(form, test_gpu("H100-SXM5-80GB"), weights);
  std::int64_t m = 0;
  for (auto _ : state) {
    m = m % 8192 + 64;
    benchmark::DoNotOptimize(predictor->predict(linear(m)));
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(predict_gemms, tessera, PredictorForm::tessera);
BENCHMARK_CAPTURE(predict_gemms, neusight, PredictorForm::neusight);
BENCHMARK_CAPTURE(predict_gemms, roofline, PredictorForm::roofline);

}  // namespace
}  // namespace tessera

BENCHMARK_MAIN();
