#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/tensor/tensor_gemm_predictor.h"
#include "tests/predictor/tensor/half_gpus.h"
#include "tests/predictor/tensor/half_test_data.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/weights_bytes.h"

namespace tessera {
namespace {

using testing::HasSubstr;

TensorGemmPredictor predictor(const std::string& gpu, Precision precision = Precision::bf16,
                              const std::string& stack = {}) {
  return {tensor_gpu(gpu), precision, plausible_weights(), stack};
}

double gpu_spread(const std::string& gpu, Precision precision = Precision::fp16) {
  return predictor(gpu, precision).effect().spread;
}

TEST(TensorPredictor, LeavesTheLaunchOutOfTheDuration) {
  const TensorGemmPredictor a100 = predictor("A100-SXM4-80GB", Precision::bf16, "new");
  const TensorWeights weights = plausible_weights();
  const Kernel kernel = half_product(4096, 4096, 4096);
  EXPECT_DOUBLE_EQ(a100.duration(kernel).value(),
                   tensor_gemm_seconds(tensor_shape(kernel),
                                       tensor_traits(tensor_gpu("A100-SXM4-80GB"), Precision::bf16),
                                       weights.shared, weights.gpus[0].effect,
                                       weights.gpus[0].stacks[0].effect));
  EXPECT_DOUBLE_EQ(a100.launch_seconds().value(), 2.6e-6);
}

TEST(TensorPredictor, AnUnknownLibraryIsTheMeanByTheRootOfTheRows) {
  // Roots of 90000 and 10000 rows are as 3 to 1: (3 * 0.8 + 0.4) / 4 whole waves.
  const TensorEffect effect = predictor("A100-SXM4-80GB").effect();
  EXPECT_DOUBLE_EQ(effect.stack.quantisation, 0.7);
  EXPECT_EQ(effect.stack.compute, 0);
  EXPECT_EQ(effect.spread, 0.04);
  EXPECT_EQ(predictor("A100-SXM4-80GB", Precision::bf16, "new").effect().spread, 0);
  EXPECT_THROW(predictor("A100-SXM4-80GB", Precision::bf16, "newer"), InputError);
}

TEST(TensorPredictor, SaysWhichGpusWereNeverMeasured) {
  EXPECT_TRUE(predictor("H100-SXM5-80GB").effect().measured);
  for (const char* id : {"V100-PCIe-32GB", "T4", "H200-SXM5-141GB", "B200-SXM-180GB"}) {
    const TensorEffect effect = predictor(id, Precision::fp16).effect();
    EXPECT_FALSE(effect.measured) << id;
    EXPECT_GE(effect.spread, 0.12) << id;
    EXPECT_THAT(effect.reason, HasSubstr("never measured")) << id;
  }
  EXPECT_THROW(predictor("P100-PCIe-16GB", Precision::fp16), InputError);
}

TEST(TensorPredictor, TakesTheRatesOfTheNearestGeneration) {
  EXPECT_EQ(predictor("H200-SXM5-141GB").effect().gpu.cap, 0.17);
  // 1000 W for 2250 TFLOP/s, where H100 has 700 W for 989.4: the cube root of the watts per FLOP/s.
  const double cooler = std::log((700 / 989.4) / (1000 / 2250.0)) / 3;
  EXPECT_NEAR(predictor("B200-SXM-180GB").effect().gpu.cap, 0.17 + cooler, 1e-12);
  EXPECT_EQ(predictor("V100-PCIe-32GB", Precision::fp16).effect().gpu.cap, 0.11);
  EXPECT_DOUBLE_EQ(predictor("H200-SXM5-141GB").effect().stack.quantisation, 0.15);
  EXPECT_DOUBLE_EQ(predictor("T4", Precision::fp16).effect().stack.quantisation, 0.7);
}

TEST(TensorPredictor, AMeasuredCardWithFewerWattsIsAnotherCard) {
  GpuSpec gpu = tensor_gpu("H100-SXM5-80GB");
  gpu.tdp = Watts(350);
  const TensorEffect half = tensor_effect(gpu, Precision::bf16, plausible_weights());
  EXPECT_NEAR(half.gpu.cap, 0.17 + std::log(2.0) / 3, 1e-12);  // the cube root of half the watts
  EXPECT_THAT(half.reason, HasSubstr("with another tdp than it was measured with"));
  gpu.tdp = Watts(1000);
  EXPECT_EQ(tensor_effect(gpu, Precision::bf16, plausible_weights()).gpu.cap, 0.17);
}

TEST(TensorPredictor, KnowsLessOfFartherAndOfCoolerCards) {
  // Two generations before Ampere; the libraries of A100 differ by 0.04.
  EXPECT_NEAR(gpu_spread("V100-PCIe-32GB"), std::hypot(0.12, 0.1, 0.04), 1e-12);
  EXPECT_GT(gpu_spread("B200-SXM-180GB"), gpu_spread("H200-SXM5-141GB"));
  // 70 W in all, and fewer per FLOP/s than A100 has: its process does 1.5 / 2.46 of the work.
  const double fewer = std::log((400 / 312.0) / (70 / 65.0 * 1.5 / 2.46)) / 3;
  EXPECT_NEAR(gpu_spread("T4"),
              std::hypot(std::hypot(0.12, 0.05, 0.04), std::hypot(0.25, fewer / 2)), 1e-12);
  // 250 W instead of 400 W for one peak: the power-limited rate falls by the cube root of 1.6, and
  // that may be wrong by half as much.
  const double slowdown = std::log(1.6) / 3;
  EXPECT_NEAR(predictor("A100-PCIe-40GB").effect().gpu.cap, 0.11 + slowdown, 1e-12);
  EXPECT_NEAR(gpu_spread("A100-PCIe-40GB"), std::hypot(0.12, 0.04, slowdown / 2), 1e-12);
  EXPECT_THAT(predictor("A100-PCIe-40GB").effect().reason, HasSubstr("fewer watts"));
}

TEST(TensorPredictor, AnOlderProcessGetsFewerFlopsOutOfAWatt) {
  // V100's 250 W for 112 TFLOP/s are 1.36 W per TFLOP/s of A100's process, which has 1.28.
  EXPECT_EQ(predictor("V100-PCIe-32GB", Precision::fp16).effect().gpu.cap, 0.11);
  const double fewer = std::log((400 / 312.0) / (70 / 65.0 * 1.5 / 2.46));
  EXPECT_NEAR(predictor("T4", Precision::fp16).effect().gpu.cap, 0.11 + fewer / 3, 1e-12);
}

TEST(TensorPredictor, AnotherVendorsCardIsThatOfItsProcessAndPower) {
  GpuSpec mi300x = tensor_gpu("H100-SXM5-80GB");
  mi300x.id = "MI300X";
  mi300x.vendor = "AMD";
  mi300x.die = {};
  mi300x.architecture = Architecture::cdna3;
  mi300x.bf16 = mi300x.fp16 = FlopsPerSecond(1307.4e12);
  mi300x.tdp = Watts(750);
  const TensorEffect effect =
      TensorGemmPredictor(mi300x, Precision::bf16, plausible_weights(), {}).effect();
  const double fewer = std::log((700 / 989.4) / (750 / 1307.4));
  EXPECT_NEAR(effect.gpu.cap, 0.17 + fewer / 3, 1e-12);
  EXPECT_THAT(effect.reason, HasSubstr("another vendor"));
  mi300x.architecture = Architecture::cdna2;
  const TensorEffect older =
      TensorGemmPredictor(mi300x, Precision::bf16, plausible_weights(), {}).effect();
  EXPECT_DOUBLE_EQ(older.stack.quantisation, 0.7);  // A100's
}

TEST(TensorPredictor, SaysWhenAFormatWasNotTimed) {
  // H100 rows are bf16 alone; both formats were timed on A100.
  EXPECT_GT(gpu_spread("H100-SXM5-80GB", Precision::fp16),
            gpu_spread("H100-SXM5-80GB", Precision::bf16));
  EXPECT_THAT(predictor("H100-SXM5-80GB", Precision::fp16).effect().reason, HasSubstr("fp16"));
  EXPECT_EQ(gpu_spread("A100-SXM4-80GB", Precision::fp16),
            gpu_spread("A100-SXM4-80GB", Precision::bf16));
}

TEST(TensorPredictor, GradientsTakeTheTimeOfTheForwardWithAWiderSpread) {
  const TensorGemmPredictor a100 = predictor("A100-SXM4-80GB");
  const Kernel forward = half_product(2048, 4096, 1024);
  Kernel gradient = forward;
  gradient.layout = GemmLayout::nt;
  EXPECT_EQ(a100.duration(forward), a100.duration(gradient));
  EXPECT_NEAR(a100.predict(gradient).spread.gpu, std::hypot(0.04, 0.05), 1e-12);
  EXPECT_THAT(a100.reason(gradient), HasSubstr("never timed"));
  EXPECT_EQ(a100.reason(forward), a100.effect().reason);
}

TEST(TensorPredictor, AddingToAWiderBufferTakesLonger) {
  const TensorGemmPredictor a100 = predictor("A100-SXM4-80GB");
  Kernel plain = half_product(8192, 8192, 8192);
  plain.layout = GemmLayout::nt;
  Kernel summed = plain;
  summed.bytes_read += Bytes(4 * 8192 * 8192);  // the FP32 buffer
  summed.bytes_written = Bytes(4 * 8192 * 8192);
  // Bound by arithmetic, which is 6 % slower in log.
  EXPECT_NEAR(std::log(a100.predict(summed).compute_time / a100.predict(plain).compute_time), 0.06,
              1e-6);
  EXPECT_THAT(a100.reason(summed), HasSubstr("wider numbers"));
}

TEST(TensorPredictor, FlagsSizesThatWereNeverTimed) {
  const TensorGemmPredictor a100 = predictor("A100-SXM4-80GB");
  const LogSpread within = a100.predict(half_product(4096, 4096, 4096)).spread;
  EXPECT_DOUBLE_EQ(within.shape, 0.07);
  const KernelPrediction far = a100.predict(half_product(131072, 4096, 4096));
  EXPECT_EQ(far.extrapolated.input, "m");
  EXPECT_DOUBLE_EQ(far.extrapolated.factor, 4);
  EXPECT_NEAR(far.spread.shape, std::hypot(0.07, 0.1 * 2), 1e-12);
  EXPECT_GT(a100.predict(half_product(4096, 4096, 4097)).spread.shape, 0.3);
  EXPECT_DOUBLE_EQ(a100.predict(half_product(16, 4096, 256)).spread.shape, 0.11);  // short
  Kernel batched = half_product(512, 512, 64);
  batched.kind = KernelKind::batched_gemm;
  batched.batch = 64;
  EXPECT_NEAR(a100.predict(batched).spread.gpu, std::hypot(0.04, 0.1), 1e-12);
}

TEST(TensorPredictor, NeverBeatsTheRoofline) {
  TensorWeights weights = plausible_weights();
  weights.gpus[0].effect = {-1, -1, -1, 0};  // a fit gone wrong
  const TensorGemmPredictor a100(tensor_gpu("A100-SXM4-80GB"), Precision::bf16, weights);
  for (const Kernel& kernel :
       {half_product(8192, 8192, 8192), half_product(1, 8192, 8192), half_product(64, 64, 64)}) {
    EXPECT_LE(a100.predict(kernel).utilization, 1);
    EXPECT_GE(a100.duration(kernel).value(), kernel.flops.value() / 312e12);
  }
}

TEST(TensorPredictor, UnderLoadShortProductsRunAtTheRateOfLongOnes) {
  // Where the power limit decides, a product of any length takes the share of the peak that one of
  // 0.1 s, timed by itself, holds: exp(cap + decades * cap_per_decade) of two decades above 1 ms.
  const TensorWeights weights = plausible_weights();
  const TensorGemmPredictor isolated(tensor_gpu("H100-SXM5-80GB"), Precision::bf16, weights);
  const TensorGemmPredictor loaded(tensor_gpu("H100-SXM5-80GB"), Precision::bf16, weights, {},
                                   Load::sustained);
  const TensorGpuEffect<double> own = isolated.effect().gpu;
  EXPECT_NEAR(loaded.effect().gpu.cap, own.cap + own.cap_per_decade * std::log10(101), 1e-12);
  const Kernel short_one = half_product(8192, 8192, 8192);          // 1.1 ms at peak
  const Kernel long_one = half_product(8192 * 30, 8192, 8192 * 3);  // 0.1 s
  const auto share = [](const TensorGemmPredictor& predictor, const Kernel& kernel) {
    return kernel.flops.value() / 989.4e12 / predictor.predict(kernel).compute_time.value();
  };
  EXPECT_NEAR(share(loaded, long_one), share(isolated, long_one), 1e-3);
  EXPECT_LT(share(loaded, short_one), share(isolated, short_one));
  EXPECT_GT(loaded.effect().spread, isolated.effect().spread);
  const Kernel by_memory = half_product(16, 8192, 8192);
  EXPECT_NEAR(loaded.duration(by_memory) / isolated.duration(by_memory), 1, 1e-3);
}

TEST(TensorPredictor, AnotherDieKeptBusyGetsFewMoreFlopsFromAWatt) {
  const TensorWeights weights = plausible_weights();
  const auto cap = [&](const char* id, Load load) {
    return TensorGemmPredictor(tensor_gpu(id), Precision::bf16, weights, {}, load).effect().gpu.cap;
  };
  // Watts per FLOP/s to the power 0.8 where it is kept busy, to the cube root where it is not.
  const double cooler = std::log((700 / 989.4) / (1000 / 2250.0));
  EXPECT_NEAR(cap("B200-SXM-180GB", Load::sustained) - cap("H100-SXM5-80GB", Load::sustained),
              0.8 * cooler, 1e-12);
  EXPECT_NEAR(cap("B200-SXM-180GB", Load::isolated) - cap("H100-SXM5-80GB", Load::isolated),
              cooler / 3, 1e-12);
  // Boards of one die: voltage moves with the clock, idle before or not.
  const double board = std::log(400 / 250.0) / 3;
  for (const Load load : {Load::isolated, Load::sustained})
    EXPECT_NEAR(cap("A100-PCIe-40GB", load) - cap("A100-SXM4-80GB", load), board, 1e-12);
}

TEST(TensorPredictor, HalfThePeakOfTensorCoresAloneMakesNoProductFaster) {
  const TensorWeights weights = plausible_weights();
  const GpuSpec whole = half_test_gpu("L4");
  GpuSpec half = whole;  // as a GeForce card of the die: held to half of what its SMs could do
  half.bf16 = half.fp16 = whole.bf16 / 2;
  const TensorGemmPredictor fast(whole, Precision::bf16, weights, {}, Load::sustained);
  const TensorGemmPredictor held(half, Precision::bf16, weights, {}, Load::sustained);
  EXPECT_GT(fast.effect().gpu.cap, 0);                              // 72 W limit it
  EXPECT_NEAR(held.effect().gpu.cap, fast.effect().gpu.cap, 1e-3);  // SMs x clock is 120.9 TFLOP/s
  for (const std::int64_t size : {512, 4096, 16384}) {
    const Kernel kernel = half_product(size, size, size);
    EXPECT_GE(held.duration(kernel), fast.duration(kernel)) << size;
  }
}

TEST(TensorPredictor, HopperReadsOneOrderOfTf32ByItsOwnInstructions) {
  const TensorWeights weights = plausible_weights();
  const auto time_of = [&](const char* id, Precision precision, GemmLayout layout) {
    Kernel kernel = half_product(8192, 8192, 8192);
    kernel.precision = precision;
    kernel.layout = layout;
    GpuSpec gpu = tensor_gpu(id);
    gpu.tf32 = gpu.bf16 / 2;
    return TensorGemmPredictor(gpu, precision, weights).duration(kernel);
  };
  const double peak = 494.7e12 * 0.629;  // of H100, by mma.sync
  for (const GemmLayout layout : {GemmLayout::nn, GemmLayout::nt}) {
    const Seconds other = time_of("H100-SXM5-80GB", Precision::tf32, layout);
    EXPECT_GT(other, time_of("H100-SXM5-80GB", Precision::tf32, GemmLayout::tn) * 1.05);
    EXPECT_GE(other.value(), 2 * std::pow(8192.0, 3) / peak);
    EXPECT_EQ(time_of("H100-SXM5-80GB", Precision::bf16, layout),
              time_of("H100-SXM5-80GB", Precision::bf16, GemmLayout::tn));
    EXPECT_EQ(time_of("A100-SXM4-80GB", Precision::tf32, layout),
              time_of("A100-SXM4-80GB", Precision::tf32, GemmLayout::tn));
  }
}

TEST(TensorPredictor, AWholeContractionIsOfOneBlock) {
  const TensorWeights weights = plausible_weights();
  const GpuSpec gpu = tensor_gpu("H100-SXM5-80GB");
  const TensorGemmPredictor split(gpu, Precision::bf16, weights);
  TensorGemmPredictor whole = split;
  whole.keep_whole();
  // Four tiles of 128 x 128 use four of 132 SMs, which share 1 / 33 of the peak at most.
  const Kernel few = half_product(256, 256, 65536), many = half_product(8192, 8192, 8192);
  EXPECT_GT(whole.duration(few), split.duration(few) * 2);
  EXPECT_EQ(whole.duration(many), split.duration(many));
}

TEST(TensorPredictor, StartsAKernelInAsManyClocks) {
  TensorWeights weights = plausible_weights();
  GpuSpec gpu = tensor_gpu("T4");  // takes A100's, the nearest
  gpu.boost_clock = Hertz(2.82e9);
  const double before = tensor_effect(gpu, Precision::fp16, weights).stack.launch_seconds;
  weights.gpus[0].clock = 1.41e9;
  const TensorEffect effect = tensor_effect(gpu, Precision::fp16, weights);
  EXPECT_DOUBLE_EQ(effect.stack.launch_seconds, before / 2);
  EXPECT_DOUBLE_EQ(effect.fixed_costs, 0.5);
  const TensorEffect own = tensor_effect(tensor_gpu("A100-SXM4-80GB"), Precision::bf16, weights);
  EXPECT_DOUBLE_EQ(own.fixed_costs, 1);
}

TEST(TensorPredictor, OperandsComeFromTheL2WhereCallsInTurnFit) {
  GpuSpec gpu = tensor_gpu("A100-SXM4-80GB");
  gpu.id = "made up";
  gpu.memory_bandwidth = BytesPerSecond(500e9);
  gpu.l2 = Bytes(std::int64_t{96} << 20);
  const TensorWeights weights = plausible_weights();
  const TensorGemmPredictor cold(gpu, Precision::bf16, weights);
  TensorGemmPredictor warm = cold;
  warm.keep_warm(5);
  const Kernel small =
      half_product(16, 2048, 2048);  // 8.5 MB; five of them fit into 80 % of 101 MB
  const Kernel large = half_product(16, 4096, 4096);  // 34 MB
  EXPECT_LT(warm.duration(small), 0.7 * cold.duration(small));
  EXPECT_EQ(warm.duration(large), cold.duration(large));
  warm.keep_warm(1);
  EXPECT_LT(warm.duration(large), 0.7 * cold.duration(large));
  warm.keep_warm(0);
  EXPECT_EQ(warm.duration(small), cold.duration(small));
}

TEST(TensorPredictor, CoversProductsOfItsPrecisionAlone) {
  const TensorGemmPredictor a100 = predictor("A100-SXM4-80GB");
  EXPECT_TRUE(a100.covers(half_product(64, 64, 64)));
  const Kernel other = half_product(64, 64, 64, Precision::fp32);
  EXPECT_FALSE(a100.covers(other));
  EXPECT_THROW(a100.predict(other), std::invalid_argument);
}

TEST(TensorWeights, SurviveTheFile) {
  const ScratchFolder folder;
  const TensorWeights weights = plausible_weights();
  const std::string bytes = bytes_of(weights, folder);
  const TensorWeights loaded = *load_weights(folder.path() / "weights.pb").tensor_gemm;
  EXPECT_EQ(loaded.shared.values(), weights.shared.values());
  EXPECT_EQ(loaded.gpus[0].stacks[1].effect.values(), weights.gpus[0].stacks[1].effect.values());
  EXPECT_EQ(loaded.range, weights.range);
  EXPECT_TRUE(bytes_of(loaded, folder) == bytes);
}

TEST(TensorWeights, DamagedOnesAreRefused) {
  const ScratchFolder folder;
  EXPECT_THROW(load_weights(folder.path() / "none.pb"), InputError);
  EXPECT_THROW(load_weights(folder.write("text.pb", "no weights")), InputError);
  EXPECT_THROW(load_weights(folder.write("empty.pb", "")), InputError);
  const auto refused = [&](const auto& damage) {
    TensorWeights weights = plausible_weights();
    damage(weights);
    bytes_of(weights, folder);
    try {
      load_weights(folder.path() / "weights.pb");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto nothing = [](TensorWeights&) {};
  EXPECT_EQ(refused(nothing), "");
  EXPECT_THAT(refused([](TensorWeights& w) { w.shared.prologue = std::nan(""); }),
              HasSubstr("no numbers"));
  EXPECT_THAT(refused([](TensorWeights& w) { w.shared.norm = 0.5; }), HasSubstr("range"));
  EXPECT_THAT(refused([](TensorWeights& w) { w.gpus[0].stacks[1].effect.quantisation = 2; }),
              testing::AllOf(HasSubstr("weights.pb"), HasSubstr("'old'")));
  EXPECT_THAT(refused([](TensorWeights& w) { w.gpus[0].stacks[0].rows = 0; }), HasSubstr("'new'"));
  EXPECT_THAT(refused([](TensorWeights& w) { w.gpus[1].stacks.clear(); }), HasSubstr("library"));
  EXPECT_THAT(refused([](TensorWeights& w) { w.gpus.clear(); }), HasSubstr("no GPU"));
}

TEST(TensorWeights, ShippedOnesRunLargeProductsNearThePeak) {
  // The largest rates in the measurements are 0.93-0.97 of the peaks, typical ones 0.75-0.9.
  const TensorWeights weights = *load_weights(committed_weights()).tensor_gemm;
  for (const char* id : {"A100-SXM4-80GB", "H100-SXM5-80GB"}) {
    const TensorGemmPredictor gpu(tensor_gpu(id), Precision::bf16, weights);
    const double share = gpu.predict(half_product(8192, 8192, 8192)).utilization;
    EXPECT_GT(share, 0.7) << id;
    EXPECT_LT(share, 0.95) << id;
  }
}

}  // namespace
}  // namespace tessera
