#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "predictor/gpu/gpu_overlay.h"
#include "predictor/gpu/gpu_support.h"
#include "predictor/kernel_predictor.h"
#include "predictor/tensor/tensor_core_predictor.h"
#include "predictor/tessera_predictor.h"
#include "tests/predictor/tensor/half_gpus.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/test_kernels.h"

namespace tessera {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kA100 = "A100-SXM4-80GB";
constexpr const char* kH100 = "H100-SXM5-80GB";

const PredictorWeights& weights() {
  static const PredictorWeights loaded = load_weights(committed_weights());
  return loaded;
}

/// half_test_gpu with the other dense tensor peaks of the datasheets.
GpuSpec mixed_gpu(const std::string& id) {
  GpuSpec gpu = half_test_gpu(id);
  if (gpu.architecture >= Architecture::ampere) gpu.tf32 = FlopsPerSecond(gpu.bf16.value() / 2);
  if (gpu.architecture >= Architecture::hopper) gpu.fp8 = FlopsPerSecond(2 * gpu.bf16.value());
  if (gpu.architecture == Architecture::volta) gpu.fp16 = FlopsPerSecond(112e12);
  return gpu;
}

TesseraPredictor tessera_on(const char* id) {
  return {mixed_gpu(id), weights()};
}

std::unique_ptr<KernelPredictor> roofline_on(const char* id) {
  return make_predictor(PredictorForm::roofline, mixed_gpu(id), {});
}

/// Each operand once, in the width of the format; fp8 writes 16 bits.
Kernel in_format(Kernel kernel, Precision precision) {
  const auto width = element_bytes(precision);
  kernel.precision = precision;
  kernel.bytes_read = kernel.bytes_read / 4 * width;
  kernel.bytes_written = kernel.bytes_written / 4 * (precision == Precision::fp8 ? 2 : width);
  return kernel;
}

Kernel grouped(std::vector<std::int64_t> rows, std::int64_t n, std::int64_t k) {
  std::int64_t m = 0;
  for (const std::int64_t r : rows) m += r;
  Kernel kernel = in_format(linear_kernel(m, n, k), Precision::bf16);
  kernel.kind = KernelKind::grouped_gemm;
  const auto groups = static_cast<std::int64_t>(rows.size());
  kernel.bytes_read = Bytes(2 * (m * k + groups * n * k));
  kernel.group_sizes = std::move(rows);
  return kernel;
}

Kernel attention(AttentionImplementation implementation, std::int64_t seq = 4096,
                 AttentionDirection direction = AttentionDirection::forward) {
  Kernel kernel;
  kernel.kind = KernelKind::attention;
  kernel.precision = Precision::bf16;
  kernel.attention = {.implementation = implementation,
                      .direction = direction,
                      .causal = true,
                      .batch = 2,
                      .heads = 32,
                      .kv_heads = 32,
                      .seq_q = seq,
                      .seq_kv = seq,
                      .head_dim = 128};
  kernel.flops = Flops(attention_flops(kernel.attention));
  kernel.bytes_read = Bytes(static_cast<std::int64_t>(attention_bytes(kernel.attention)));
  return kernel;
}

std::string problem_of(const KernelPredictor& predictor, const Kernel& kernel) {
  try {
    predictor.predict(kernel);
  } catch (const InputError& error) {
    return error.problems().front().text();
  }
  return "";
}

TEST(Routing, EveryKernelStaysAboveItsRoofline) {
  for (const char* id : {kA100, kH100}) {
    const TesseraPredictor predictor = tessera_on(id);
    const auto roofline = roofline_on(id);
    std::vector<Kernel> kernels{attention(AttentionImplementation::flash2),
                                grouped({1, 700, 2000, 0, 33}, 4096, 1024)};
    for (const std::int64_t m : {1, 100, 512, 16384})
      for (const std::int64_t n : {64, 1280, 50257})
        for (const std::int64_t k : {64, 5120}) {
          for (const Precision p : {Precision::tf32, Precision::bf16, Precision::fp16})
            kernels.push_back(in_format(linear_kernel(m, n, k), p));
          kernels.push_back(in_format(batched_kernel(80, m, 64, k), Precision::bf16));
        }
    for (const KernelKind kind :
         {KernelKind::elementwise, KernelKind::copy, KernelKind::fill, KernelKind::softmax,
          KernelKind::layer_norm, KernelKind::reduction, KernelKind::gather, KernelKind::scatter,
          KernelKind::multi_tensor})
      for (const std::int64_t rows : {1, 100, 100000})
        kernels.push_back(in_format(row_kernel(kind, rows, 1024), Precision::bf16));
    for (const Kernel& kernel : kernels) {
      const KernelPrediction prediction = predictor.predict(kernel);
      EXPECT_GE(prediction.duration.value(), roofline->duration(kernel).value() * (1 - 1e-12));
      EXPECT_LE(prediction.utilization, 1);
      EXPECT_GT(prediction.spread.shape, 0);
      EXPECT_GE(predictor.isolated_launch_overhead(kernel).value(), 0);
    }
  }
}

TEST(Routing, ProductsRunAtThePeakOfTheirFormat) {
  // 2 * 8192^3 FLOP take 1.11 ms at 989.4 TFLOP/s. Timed by themselves such products reach 0.75 to
  // 0.85 of the peak; calls of 0.1 s, as busy as a step, 705 to 873 TFLOP/s, 0.71 to 0.88 of it.
  const TesseraPredictor h100 = tessera_on(kH100);
  const Kernel product = linear_kernel(8192, 8192, 8192);
  const auto ms = [&](Precision p) { return h100.duration(in_format(product, p)).value() * 1e3; };
  for (const auto& [precision, ideal] :
       {std::pair(Precision::tf32, 2.222), std::pair(Precision::bf16, 1.111),
        std::pair(Precision::fp16, 1.111), std::pair(Precision::fp8, 0.5556)}) {
    EXPECT_GT(ms(precision), ideal / 0.88) << name_of(precision);
    EXPECT_LT(ms(precision), ideal / 0.65) << name_of(precision);
  }
  EXPECT_GT(ms(Precision::fp32), 2 * 8192.0 * 8192 * 8192 / 67e12 * 1e3);
}

TEST(Routing, Fp8TakesABf16ProductOfHalfTheContractionAtItsPeak) {
  // Twice the rate, the same bytes per step of the contraction: a tile takes as long, and so does
  // its prologue. The traffic differs, so the product is one that computes.
  const TesseraPredictor h100 = tessera_on(kH100);
  const Kernel fp8 = in_format(linear_kernel(8192, 8192, 8192), Precision::fp8);
  Kernel bf16 = in_format(linear_kernel(8192, 8192, 4096), Precision::bf16);
  EXPECT_EQ(fp8.bytes(), bf16.bytes());
  EXPECT_DOUBLE_EQ(h100.duration(fp8).value(), h100.duration(bf16).value());
  EXPECT_GT(h100.predict(fp8).spread.gpu, 0.2);
}

TEST(Routing, ProductsHoldStartAndDrainOfAReplayedKernel) {
  // Graph replays of tensor_core.csv are never faster than about 2.5 us.
  const TesseraPredictor h100 = tessera_on(kH100);
  const double tiny = h100.duration(in_format(linear_kernel(1, 32, 32), Precision::bf16)).value();
  EXPECT_GT(tiny, 1.5e-6);
  EXPECT_LT(tiny, 3.5e-6);
}

TEST(Routing, BatchedProductsWithRowsOff16BytesRunOnTheFp32Units) {
  // Heads of 150, 108 and 100 fp16 numbers take 300, 216 and 200 bytes, heads of 144 take 9 * 32.
  const TesseraPredictor a100 = tessera_on(kA100);
  for (const std::int64_t head : {144, 150, 108, 100}) {
    for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>(2048, head), {head, 2048}}) {
      const Kernel half = in_format(batched_kernel(48, 2048, n, k), Precision::fp16);
      const double at_least = half.flops.value() / 19.5e12;  // of the FP32 units
      EXPECT_EQ(a100.duration(half).value() >= at_least, head != 144) << n << " " << k;
      EXPECT_EQ(TensorCorePredictor::covers(half), head == 144);
      // Half of the bytes of the same product in fp32, the same arithmetic.
      EXPECT_LE(a100.duration(half), a100.duration(batched_kernel(48, 2048, n, k)));
      if (head != 144) {
        EXPECT_THAT(a100.notes(half), Contains(HasSubstr("rows off 16 bytes: never measured")));
      }
    }
  }
  // A single product of such rows stays on tensor cores.
  EXPECT_TRUE(
      TensorCorePredictor::covers(in_format(linear_kernel(64, 50257, 768), Precision::fp16)));
}

TEST(Routing, AFormatWithoutTensorCoresIsRefusedByName) {
  const Kernel product = linear_kernel(512, 512, 512);
  const TesseraPredictor v100 = tessera_on("V100-PCIe-32GB");
  EXPECT_EQ(problem_of(v100, in_format(product, Precision::fp16)), "");
  for (const Precision p : {Precision::bf16, Precision::tf32, Precision::fp8}) {
    const std::string problem = problem_of(v100, in_format(product, p));
    EXPECT_THAT(problem, HasSubstr("V100-PCIe-32GB"));
    EXPECT_THAT(problem, HasSubstr(std::string(name_of(p))));
    EXPECT_THAT(problem, HasSubstr("fp32, fp16"));
  }
  EXPECT_THAT(problem_of(tessera_on("P100-PCIe-16GB"), in_format(product, Precision::fp16)),
              HasSubstr("one of fp32,"));
  EXPECT_THAT(problem_of(tessera_on(kA100), in_format(product, Precision::fp8)),
              HasSubstr("fp32, tf32, bf16, fp16"));
  EXPECT_THAT(problem_of(*roofline_on("V100-PCIe-32GB"), in_format(product, Precision::bf16)),
              HasSubstr("V100-PCIe-32GB"));
}

TEST(Routing, TheNetsOfNeusightRefuseWhatTheyWereNotTrainedOn) {
  const auto neusight = make_predictor(PredictorForm::neusight, mixed_gpu(kA100), weights());
  EXPECT_EQ(problem_of(*neusight, linear_kernel(512, 512, 512)), "");
  for (const Kernel& kernel : {in_format(linear_kernel(512, 512, 512), Precision::bf16),
                               in_format(linear_kernel(512, 512, 512), Precision::tf32),
                               in_format(row_kernel(KernelKind::softmax, 64, 64), Precision::bf16),
                               attention(AttentionImplementation::flash2)})
    EXPECT_THAT(problem_of(*neusight, kernel), HasSubstr("tessera or roofline"));
}

TEST(Routing, WeightsWithoutASectionSayWhichModelToTrain) {
  PredictorWeights fp32 = weights();
  fp32.tensor_gemm.reset();
  fp32.attention.reset();
  const TesseraPredictor a100(mixed_gpu(kA100), fp32);
  EXPECT_EQ(problem_of(a100, linear_kernel(512, 512, 512)), "");
  EXPECT_THAT(problem_of(a100, in_format(linear_kernel(512, 512, 512), Precision::bf16)),
              HasSubstr("--model tensor-gemm"));
  EXPECT_THAT(problem_of(a100, attention(AttentionImplementation::flash2)),
              HasSubstr("--model attention"));
}

TEST(AttentionSupport, FollowsTheGeneration) {
  using enum AttentionImplementation;
  const auto fastest = [](Architecture architecture, const char* vendor = "NVIDIA") {
    GpuSpec gpu;
    gpu.vendor = vendor;
    gpu.architecture = architecture;
    return fastest_implementation(gpu);
  };
  EXPECT_EQ(fastest(Architecture::hopper), flash3);
  EXPECT_EQ(fastest(Architecture::ampere), flash2);
  EXPECT_EQ(fastest(Architecture::ada), flash2);
  EXPECT_EQ(fastest(Architecture::blackwell), cudnn);
  for (const Architecture old : {Architecture::pascal, Architecture::volta, Architecture::turing})
    EXPECT_EQ(fastest(old), std::nullopt);
  EXPECT_EQ(fastest(Architecture::cdna3, "AMD"), std::nullopt);
  for (const auto implementation : {flash2, flash3, cudnn, trtllm}) {
    EXPECT_TRUE(supports(mixed_gpu(kH100), implementation));
    EXPECT_EQ(supports(mixed_gpu(kA100), implementation), implementation != flash3);
    EXPECT_FALSE(supports(mixed_gpu("V100-PCIe-32GB"), implementation));
  }
  EXPECT_THAT(problem_of(tessera_on(kA100), attention(flash3)), HasSubstr("choose flash2"));
  EXPECT_THAT(problem_of(tessera_on("V100-PCIe-32GB"), attention(flash2)), HasSubstr("unfused"));
  EXPECT_THAT(problem_of(*roofline_on(kA100), attention(flash3)), HasSubstr("Hopper"));
}

TEST(Routing, AttentionIsThatOfTraining) {
  const TesseraPredictor h100 = tessera_on(kH100);
  const Kernel kernel = attention(AttentionImplementation::flash3);
  const AttentionPredictor alone(mixed_gpu(kH100), *weights().attention);
  EXPECT_EQ(h100.duration(kernel), alone.duration(kernel.attention));
  // Four times the scores; 4 * 2*32 * 8192^2 * 128 / 2 FLOP = 1.1 TFLOP take 1.1 ms at the peak.
  const Kernel longer = attention(AttentionImplementation::flash3, 8192);
  EXPECT_NEAR(h100.duration(longer) / h100.duration(kernel), 4, 0.4);
  EXPECT_GT(h100.duration(longer).value(), 1.11e-3);
  // Forward and backward together are their sum.
  const auto both =
      attention(AttentionImplementation::flash3, 4096, AttentionDirection::forward_backward);
  const auto backward =
      attention(AttentionImplementation::flash3, 4096, AttentionDirection::backward);
  EXPECT_NEAR(h100.duration(both).value(),
              (h100.duration(kernel) + h100.duration(backward)).value(), 1e-12);
}

TEST(GroupedProducts, OneGroupIsThePlainProductAndEqualOnesTheBatch) {
  const TesseraPredictor h100 = tessera_on(kH100);
  const Kernel one = grouped({4096}, 2048, 1024);
  EXPECT_EQ(h100.duration(one),
            h100.duration(in_format(linear_kernel(4096, 2048, 1024), Precision::bf16)));
  for (const std::int64_t rows : {1, 100, 777}) {
    const Kernel equal = grouped(std::vector<std::int64_t>(8, rows), 2048, 1024);
    const Kernel batch = in_format(batched_kernel(8, rows, 2048, 1024), Precision::bf16);
    EXPECT_DOUBLE_EQ(h100.duration(equal).value(), h100.duration(batch).value()) << rows;
  }
}

TEST(GroupedProducts, EqualContractionsAreTheBatch) {
  // Weight gradients: m outputs, n inputs, one contraction over the tokens of each expert.
  const TesseraPredictor h100 = tessera_on(kH100);
  Kernel batch = in_format(batched_kernel(4, 1024, 2048, 512), Precision::bf16);
  batch.layout = GemmLayout::nt;
  Kernel equal = batch;
  equal.kind = KernelKind::grouped_gemm;
  equal.batch = 1;
  equal.k = 4 * 512;
  equal.group_sizes = {512, 512, 512, 512};
  EXPECT_DOUBLE_EQ(h100.duration(equal).value(), h100.duration(batch).value());
}

TEST(GroupedProducts, UnevenGroupsCostTheirTilesAndTheLongestOne) {
  const TesseraPredictor h100 = tessera_on(kH100);
  // 64 groups of 129 rows fill 2 tiles of 128 rows each; together their rows fill 65.
  Kernel groups = grouped(std::vector<std::int64_t>(64, 129), 8192, 4096);
  Kernel together = grouped({64 * 129}, 8192, 4096);
  together.bytes_read = groups.bytes_read;
  EXPECT_GT(h100.duration(groups).value(), 1.05 * h100.duration(together).value());
  // All rows in one of eight groups: at least the product of that group.
  const Kernel skewed = grouped({8192, 0, 0, 0, 0, 0, 0, 0}, 2048, 1024);
  EXPECT_GE(h100.duration(skewed),
            h100.duration(in_format(linear_kernel(8192, 2048, 1024), Precision::bf16)));
}

TEST(GroupedProducts, InFp32TheyAreABatchOfEqualGroups) {
  const TesseraPredictor h100 = tessera_on(kH100);
  Kernel kernel = linear_kernel(400, 512, 256);
  kernel.kind = KernelKind::grouped_gemm;
  kernel.group_sizes = {400};
  EXPECT_EQ(h100.duration(kernel), h100.duration(linear_kernel(400, 512, 256)));
  kernel.group_sizes = {100, 100, 100, 100};
  kernel.layout = GemmLayout::nn;
  Kernel batch = batched_kernel(4, 100, 512, 256);
  batch.bytes_read = kernel.bytes_read;
  batch.bytes_written = kernel.bytes_written;
  EXPECT_EQ(h100.duration(kernel), h100.duration(batch));
  EXPECT_GT(h100.predict(kernel).spread.shape, h100.predict(batch).spread.shape);
}

TEST(MemoryBoundKernels, HalfTheBytesTakeTheTimeOfAsManyBytesInFp32) {
  const TesseraPredictor a100 = tessera_on(kA100);
  const Kernel half = in_format(row_kernel(KernelKind::elementwise, 8192, 8192), Precision::bf16);
  const Kernel single = row_kernel(KernelKind::elementwise, 8192, 4096);
  EXPECT_EQ(half.bytes(), single.bytes());
  // 8 + 3.1 instructions for each of twice as many elements take 108 SMs of 128 lanes at 1.41 GHz
  // 38.2 us, a quarter (.255) of the 150 us of the bytes; a norm of 4 adds .255^4 / 4.
  EXPECT_NEAR(a100.duration(half) / a100.duration(single), 1 + 1.05e-3, 3e-5);
  EXPECT_GT(a100.predict(half).spread.gpu, a100.predict(single).spread.gpu);
}

TEST(Notes, SayWhatWasNeverMeasured) {
  const TesseraPredictor a100 = tessera_on(kA100), l4 = tessera_on("L4");
  const Kernel product = in_format(linear_kernel(4096, 4096, 4096), Precision::bf16);
  EXPECT_THAT(a100.notes(product), IsEmpty());
  EXPECT_THAT(a100.notes(linear_kernel(64, 64, 64)), IsEmpty());
  EXPECT_THAT(l4.notes(product),
              Contains("bf16 products on L4: never measured; rates of A100-SXM4-80GB"));
  EXPECT_THAT(a100.notes(in_format(product, Precision::tf32)),
              Contains(HasSubstr("tf32 products on A100-SXM4-80GB: never measured")));
  Kernel gradient = product;
  gradient.layout = GemmLayout::nt;
  EXPECT_THAT(a100.notes(gradient), Contains(HasSubstr("weight gradients")));
  Kernel vocabulary = in_format(linear_kernel(4096, 50257, 768), Precision::bf16);
  EXPECT_THAT(a100.notes(vocabulary), Contains(HasSubstr("off 16 bytes")));
  EXPECT_THAT(l4.notes(attention(AttentionImplementation::flash2)),
              Contains(HasSubstr("flash2 attention on L4: never measured")));
}

TEST(PredictionBasis, OfHalfPrecisionProductsNamesTheirSourceAndEachNoteOnce) {
  const Kernel product = in_format(linear_kernel(4096, 4096, 4096), Precision::bf16);
  Kernel gradient = product;
  gradient.layout = GemmLayout::nn;
  const std::vector<Kernel> kernels{product, gradient, product, gradient,
                                    row_kernel(KernelKind::softmax, 64, 64)};
  const auto basis = [&](const char* id) {
    return prediction_basis(PredictorForm::tessera, mixed_gpu(id), weights(), kernels);
  };
  // fp32 kernels of this board were never measured, its products on tensor cores were.
  const PredictionBasis a100 = basis(kA100), l4 = basis("L4");
  EXPECT_EQ(prediction_basis(PredictorForm::tessera, mixed_gpu(kA100), weights()).mode,
            PredictionMode::zero_shot);
  EXPECT_EQ(a100.mode, PredictionMode::calibrated);
  EXPECT_THAT(a100.effect, HasSubstr("bf16 products: measured on A100-SXM4-80GB"));
  EXPECT_EQ(a100.notes.size(), 1u);
  EXPECT_EQ(l4.mode, PredictionMode::zero_shot);
  EXPECT_EQ(l4.notes.size(), 2u);
}

}  // namespace
}  // namespace tessera
