#include <cmath>

#include <gtest/gtest.h>

#include "lab/predict/attention_stand_in.h"
#include "lab/predict/evaluation.h"
#include "lab/predict/source_spreads.h"
#include "predictor/attention/attention_predictor.h"
#include "predictor/product_format.h"
#include "predictor/weights/weights.h"
#include "tests/predictor/tensor/half_test_data.h"
#include "tests/predictor/test_files.h"

namespace tessera {
namespace {

GpuSpec h100(const std::string& id) {
  GpuSpec gpu = tensor_gpu(id);
  gpu.fp8 = FlopsPerSecond(1979e12);
  gpu.fp32 = FlopsPerSecond(66.9e12);
  gpu.compute_capability = "9.0";
  return gpu;
}

GpuSpec blackwell(const std::string& id) {
  GpuSpec gpu = h100(id);
  gpu.architecture = Architecture::blackwell;
  gpu.compute_capability = "10.0";
  gpu.fp4 = FlopsPerSecond(4 * 1979e12);
  return gpu;
}

std::vector<double> predicted(const std::string& text,
                              GpuSpec (*lookup)(const std::string&) = h100) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.csv", text);
  const KernelScores scores =
      score_kernels(path, load_weights(committed_weights()), PredictorForm::tessera, lookup);
  std::vector<double> times;
  for (const KernelScore& row : scores.rows) {
    EXPECT_EQ(row.skipped, "");
    times.push_back(row.predicted_us);
  }
  return times;
}

constexpr const char* kExpertHeader =
    "gpu,dtype,gated,num_tokens,hidden,ffn,top_k,experts,tp,ep,routing,latency_us,stack\n";

std::string experts(int tokens, int ranks, const std::string& stack) {
  return "H100-SXM5-80GB,bf16,1," + std::to_string(tokens) + ",4096,1024,8,128,1," +
         std::to_string(ranks) + ",balanced,100," + stack + "\n";
}

TEST(ProductFormats, AHalvingOfTheWidthIsWorthLessThanTwice) {
  const ProductLoss half = product_format("fp8")->loss(), quarter = product_format("nvfp4")->loss();
  EXPECT_DOUBLE_EQ(quarter.tiles, 2 * half.tiles);
  EXPECT_DOUBLE_EQ(quarter.power, 2 * half.power);
  EXPECT_GT(half.power, 0);
  EXPECT_GT(half.tiles, half.power);
  EXPECT_DOUBLE_EQ(product_format("fp8_block")->loss().tiles, half.tiles);
}

TEST(ProductFormats, BlocksAreScaledWithoutASearchOfTheWholeMatrix) {
  // fp8 reads the matrix for its largest value, 2 bytes each, then to scale it, 2 and 1.
  const auto whole = quantization_kernels(*product_format("fp8"), 1024, 512);
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].bytes().value(), 2 * 1024 * 512 + 4 * 1024);
  EXPECT_EQ(whole[1].bytes().value(), 3 * 1024 * 512);
  EXPECT_EQ(quantization_kernels(*product_format("fp8_block"), 1024, 512).size(), 1u);
}

TEST(ServedExperts, TritonMovesEveryChoiceOnEveryRank) {
  const auto times = predicted(kExpertHeader + experts(16384, 64, "vllm/vllm_tritonexperts") +
                               experts(16384, 64, "trtllm/moe_torch_flow_cutlass") +
                               experts(16384, 1, "vllm/vllm_tritonexperts"));
  ASSERT_EQ(times.size(), 3u);
  // 131,072 choices: two products write 2048 and 4096 columns, an activation reads 2048 and writes
  // 1024, a sum reads 4096: 13,312 columns of 2 bytes are 3.5 GB, at 3.35 TB/s 1,042 us.
  EXPECT_GT(times[0], 1042);
  EXPECT_LT(times[1], 400);  // its own 2,048 rows, and a sum for 16,384 tokens
  EXPECT_GT(times[2], times[0]);
}

TEST(ServedExperts, VllmsActivationAndSumTakeInstructions) {
  const auto times = predicted(kExpertHeader + experts(16384, 64, "vllm/vllm_tritonexperts") +
                               experts(16384, 64, "sglang/sglang_fused_moe_triton"));
  ASSERT_EQ(times.size(), 2u);
  // 131,072 choices: 77 instructions for each of 1,536 elements read and written, 60 for each of
  // 4,096 that are summed, 128 a clock on 132 SMs of 1.98 GHz: 464 and 963 us, where the bytes take
  // 240 and 361 us at 3.35 TB/s.
  EXPECT_GT(times[0], times[1] + 464 + 963 - 1.15 * (240 + 361));
  EXPECT_LT(times[0], times[1] + 464 + 963);
}

TEST(ServedExperts, TritonsDoWhatAmperesSmsDoOnBlackwell) {
  const std::string rows = kExpertHeader + experts(16384, 1, "sglang/sglang_fused_moe_triton") +
                           experts(16384, 1, "trtllm/moe_torch_flow_cutlass");
  const auto hopper = predicted(rows), newer = predicted(rows, blackwell);
  ASSERT_EQ(newer.size(), 2u);
  EXPECT_GT(newer[0],
            1.5 * hopper[0]);  // a quarter of the peak, less what power took; as much moves
  EXPECT_LT(newer[1], 1.1 * hopper[1]);
}

TEST(ServedExperts, EveryChoiceTakesClocksOnEveryRank) {
  // Little to move: 131,072 choices of 300 clocks on 132 SMs of 1.98 GHz take 150 us.
  const auto times = predicted(std::string(kExpertHeader) +
                               "H100-SXM5-80GB,bf16,1,16384,512,1024,8,128,1,64,balanced,100,"
                               "trtllm/moe_torch_flow_cutlass\n");
  ASSERT_EQ(times.size(), 1u);
  EXPECT_GT(times[0], 150);
}

TEST(ServedExperts, ExpertsWithoutTokensAreNotRead) {
  const auto times =
      predicted(kExpertHeader + experts(4, 1, "trtllm/cutlass") + experts(16, 1, "trtllm/cutlass"));
  ASSERT_EQ(times.size(), 2u);
  // 32 choices meet 32 experts, 128 choices all 128: four times the weights of 25 MB each.
  EXPECT_GT(times[1], 3 * times[0]);
}

TEST(ServedExperts, AreAtLeastAsUncertainAsTheSoftwareThatRunsThem) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.csv", kExpertHeader + experts(4096, 8, "sglang/triton"));
  const KernelScores scores =
      score_kernels(path, load_weights(committed_weights()), PredictorForm::tessera, h100);
  // 80 % of a normal distribution lie within 1.2816 standard deviations.
  EXPECT_GT(scores.rows[0].half_width, 1.2816 * source_spread::kExperts);
}

TEST(ServedAttention, AbsorbedProjectionsCostMoreArithmetic) {
  const std::string header =
      "gpu,part,dtype,kv_cache_dtype,batch,heads,seq_q,prefix,model,latency_us,stack\n";
  const std::string call = "H100-SXM5-80GB,attention,bf16,bf16,1,128,8192,0,,100,";
  const auto times =
      predicted(header + call + "sglang/flash_attention\n" + call + "vllm/flash_attn\n");
  ASSERT_EQ(times.size(), 2u);
  // (576 + 512) / (192 + 128) = 3.4 times the products; the exponentials are as many.
  EXPECT_GT(times[0], 2 * times[1]);
  EXPECT_LT(times[0], 3.4 * times[1]);
}

TEST(ServedAttention, ExponentialsInFp8AreAsSlowAsIn16Bits) {
  GpuSpec gpu = h100("H100-SXM5-80GB");
  gpu.tensor_clock = Hertz(1.83e9);
  const AttentionCall call{.implementation = AttentionImplementation::flash3,
                           .causal = false,
                           .batch = 16,
                           .heads = 64,
                           .kv_heads = 64,
                           .seq_q = 8192,
                           .seq_kv = 8192,
                           .head_dim = 64};
  const AttentionWeights weights = *load_weights(committed_weights()).attention;
  const auto seconds_of_exponentials = [&](const GpuSpec& on, const AttentionWeights& by) {
    const AttentionParts parts = AttentionPredictor(on, by).parts(call);
    return parts.parameters.exponentials / (parts.gpu.exponentials * parts.gpu.clock);
  };
  EXPECT_NEAR(seconds_of_exponentials(gpu_with_fp8_attention(gpu), fp8_attention_weights(weights)) /
                  seconds_of_exponentials(gpu, weights),
              1, 1e-12);
}

/// Read in 16 bits and written in 8 ahead of the kernel, the other way round in it.
TEST(ServedAttention, OperandsInFp8MoveThreeQuartersOfTheBytes) {
  const AttentionWeights in_16_bits = *load_weights(committed_weights()).attention;
  const AttentionWeights in_8_bits = fp8_attention_weights(in_16_bits);
  for (const auto traffic : {kMemoryShare, kCacheWrite})
    EXPECT_NEAR(std::exp(in_8_bits.profiles[0].parameters[traffic] -
                         in_16_bits.profiles[0].parameters[traffic]),
                0.75, 1e-12);
  EXPECT_EQ(in_8_bits.profiles[0].parameters[kConversion],
            in_16_bits.profiles[0].parameters[kConversion]);
}

/// TensorRT-LLM multiplies in fp8 where every key is seen, in 16 bits and slower where a window
/// hides some.
TEST(ServedAttention, AWindowOverAnEightBitCacheIsSlowerThanOverOneIn16Bits) {
  const auto call = [](const char* gpu, const char* cache, int window) {
    return std::string(gpu) +
           ",bf16,forward,1,4,64,8,128,16384,16384,100,0,trtllm/torch_flow,a/b/c," +
           std::to_string(window) + "," + cache + "\n";
  };
  std::string rows =
      "gpu,dtype,direction,causal,batch,heads,kv_heads,head_dim,seq_q,seq_kv,latency_us,tflops,"
      "stack,source,window,kv_cache_dtype\n";
  for (const int window : {8192, 16384})
    rows += call("H100-SXM5-80GB", "bf16", window) + call("H100-SXM5-80GB", "fp8", window);
  const auto times = predicted(rows);
  ASSERT_EQ(times.size(), 4u);
  EXPECT_NEAR(times[1] / times[0], 1.5, 0.1);
  EXPECT_LT(times[3], 0.8 * times[2]);
}

constexpr const char* kProductHeader = "gpu,dtype,m,n,k,latency_us,stack\n";

TEST(ServedProducts, CompiledKernelsMultiplyPairsOfTilesOnHopper) {
  const auto call = [](const char* size, const char* stack) {
    return "H100-SXM5-80GB," + std::string(size) + ",100," + stack + "\n";
  };
  const auto times = predicted(
      kProductHeader + call("fp8,512,16384,16384", "vllm") + call("fp8,513,16384,16384", "vllm") +
      call("fp8,512,16384,16384", "trtllm") + call("fp8,513,16384,16384", "trtllm"));
  ASSERT_EQ(times.size(), 4u);
  EXPECT_GT(times[1], 1.25 * times[0]);  // three pairs of 128 rows in place of two
  EXPECT_LT(times[3], 1.25 * times[2]);  // cuBLASLt has smaller tiles
}

TEST(ServedProducts, AFormatThatAGpuLacksIsRefusedByName) {
  const ScratchFolder folder;
  const auto path =
      folder.write("rows.csv",
                   "gpu,dtype,m,n,k,latency_us\n"
                   "H100-SXM5-80GB,nvfp4,64,64,64,9\nH100-SXM5-80GB,fp8,64,64,64,9\n");
  const KernelScores scores =
      score_kernels(path, load_weights(committed_weights()), PredictorForm::tessera, h100);
  EXPECT_NE(scores.rows[0].skipped.find("products in nvfp4"), std::string::npos)
      << scores.rows[0].skipped;
  EXPECT_EQ(scores.rows[1].skipped, "");
}

TEST(ServedProducts, CompiledKernelsHaveNoSmallTiles) {
  const std::string call = "H100-SXM5-80GB,fp8,256,512,65536,100,";
  const auto times = predicted(kProductHeader + call + "vllm\n" + call + "trtllm\n");
  ASSERT_EQ(times.size(), 2u);
  // Tiles of 128 x 64 are 16, of 64 x 64 twice as many: each has an SM to itself.
  EXPECT_GT(times[0], 1.25 * times[1]);
}

TEST(ServedProducts, AnUntunedCallHasOneTileWhateverItsSize) {
  const auto call = [](const char* size, const char* stack) {
    return "H100-SXM5-80GB,nvfp4," + std::string(size) + ",51200,100," + stack + "\n";
  };
  const auto times =
      predicted(kProductHeader + call("1,256", "trtllm") + call("128,256", "trtllm") +
                    call("128,8192", "trtllm") + call("1,256", "vllm"),
                blackwell);
  ASSERT_EQ(times.size(), 4u);
  EXPECT_LT(times[1], 1.1 * times[0]);   // rows that the cast reads, no more tiles
  EXPECT_LT(times[2], 1.1 * times[1]);   // 32 tiles, an SM for each
  EXPECT_LT(times[3], 0.75 * times[0]);  // tiles of 64 rows and columns
}

TEST(ServedQuantization, SglangsCastsIn4BitsSearchForNoLargestValue) {
  const std::string call = "H100-SXM5-80GB,nvfp4,16,256,256,100,";
  const auto times = predicted(kProductHeader + call + "sglang\n" + call + "vllm\n", blackwell);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_GT(times[1], times[0] + 1);  // a kernel more
}

TEST(ServedQuantization, VllmScalesEveryTokenByItself) {
  const auto call = [](const char* size, const char* stack) {
    return "H100-SXM5-80GB," + std::string(size) + ",100," + stack + "\n";
  };
  const auto times =
      predicted(kProductHeader + call("fp8,32768,256,128", "vllm") +
                call("fp8,32768,256,2048", "vllm") + call("fp8,32768,256,128", "sglang"));
  ASSERT_EQ(times.size(), 3u);
  // 32,768 rows of one pass and one to start, 1,000 clocks each, on 132 SMs of 1.98 GHz: 251 us.
  EXPECT_GT(times[0], 251);
  EXPECT_LT(times[1], 1.2 * times[0]);  // as many passes, 16 times the bytes
  EXPECT_LT(times[2], 60);
}

TEST(ServedQuantization, TensorRtLlmsSearchStartsSmallKernels) {
  const std::string call = "H100-SXM5-80GB,fp8,16,256,256,100,";
  const auto times = predicted(kProductHeader + call + "trtllm\n" + call + "sglang\n");
  ASSERT_EQ(times.size(), 2u);
  EXPECT_GT(times[0], times[1] + 4);
  const std::string header = "gpu,op,m,k,latency_us,stack\n";
  const std::string search = "H100-SXM5-80GB,compute_scale,16,256,100,";
  const auto apart = predicted(header + search + "trtllm\n" + search + "sglang\n");
  ASSERT_EQ(apart.size(), 2u);
  EXPECT_GT(apart[0], apart[1] + 4);
}

TEST(ServedConvolution, EveryChannelOfASequenceIsAThreadBlock) {
  const std::string header =
      "gpu,latency_us,num_tokens,d_state,ssm_heads,head_dim,groups,batch,d_conv\n";
  const std::string sizes = "H100-SXM5-80GB,100,4096,64,16,64,4,";
  const auto times = predicted(header + sizes + "64,4\n" + sizes + "1,4\n" + sizes + ",4\n");
  ASSERT_EQ(times.size(), 3u);
  // 64 x 1,536 blocks of two warps, 120 clocks each, on 132 SMs of 1.98 GHz: 90 us.
  EXPECT_GT(times[0], 90);
  EXPECT_LT(times[0], 92);
  EXPECT_LT(times[1], 20);
  EXPECT_DOUBLE_EQ(times[1], times[2]);  // one sequence where the file does not say
}

constexpr const char* kLatentHeader =
    "gpu,part,dtype,kv_cache_dtype,batch,heads,seq_q,prefix,model,latency_us,stack\n";

/// TensorRT-LLM: fp8 products on Hopper, behind a pass that makes their operands; on A100 the cache
/// alone is smaller.
TEST(ServedAttention, AnEightBitCacheMakesLongCallsFasterAndShortOnesSlower) {
  const auto call = [](const char* gpu, const char* cache, int tokens) {
    return std::string(gpu) + ",attention,bf16," + cache + ",4,128," + std::to_string(tokens) +
           ",0,,100,trtllm/default\n";
  };
  std::string rows = kLatentHeader;
  for (const int tokens : {256, 32768})
    rows += call("H100-SXM5-80GB", "bf16", tokens) + call("H100-SXM5-80GB", "fp8", tokens) +
            call("A100-SXM4-80GB", "bf16", tokens) + call("A100-SXM4-80GB", "fp8", tokens);
  const auto times = predicted(rows);
  ASSERT_EQ(times.size(), 8u);
  EXPECT_GT(times[1], 1.2 * times[0]);
  EXPECT_LT(times[5], 0.9 * times[4]);
  EXPECT_DOUBLE_EQ(times[2], times[3]);
  EXPECT_DOUBLE_EQ(times[6], times[7]);
}

/// Keys and values that are not cached take off what caching them would have added, from the L2 as
/// from memory: what is left is at least the launch.
TEST(ServedAttention, LatentsInTheL2TakeTime) {
  const ScratchFolder folder;
  std::string rows = kLatentHeader;
  rows += "A10,attention,bf16,bf16,1,64,8192,0,,100,trtllm/x\n";
  const auto path = folder.write("rows.csv", rows);
  const KernelScores scores = score_kernels(path, load_weights(committed_weights()),
                                            PredictorForm::tessera, [](const std::string&) {
                                              GpuSpec gpu = h100("A100-SXM4-80GB");
                                              gpu.id = "another";
                                              gpu.compute_capability = "8.6";
                                              gpu.memory_bandwidth = BytesPerSecond(10e9);
                                              gpu.l2 = Bytes(1 << 30);
                                              return gpu;
                                            });
  ASSERT_EQ(scores.rows.size(), 1u);
  EXPECT_EQ(scores.rows[0].skipped, "");
  EXPECT_GT(scores.rows[0].predicted_us, 0);
}

}  // namespace
}  // namespace tessera
