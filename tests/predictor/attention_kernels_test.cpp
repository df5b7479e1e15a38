// Which kernel an implementation has for a GPU and a call.
#include <gtest/gtest.h>

#include "predictor/attention/attention_predictor.h"
#include "predictor/attention/kernel_generation.h"
#include "predictor/weights/weights.h"
#include "tests/predictor/tensor/half_gpus.h"
#include "tests/predictor/test_files.h"

namespace tessera {
namespace {

constexpr const char* kH100 = "H100-SXM5-80GB";

/// As many SMs as H100 at its clock and bandwidth, each with Blackwell's tensor cores, twice as
/// fast.
GpuSpec like_h100(const char* compute_capability) {
  GpuSpec gpu = half_test_gpu(kH100);
  gpu.id = "another";
  gpu.architecture = Architecture::blackwell;
  gpu.compute_capability = compute_capability;
  gpu.bf16 = gpu.fp16 = FlopsPerSecond(2 * 989.4e12);
  return gpu;
}

AttentionCall call_of(AttentionImplementation implementation, std::int64_t head_dim) {
  return {.implementation = implementation,
          .causal = false,
          .batch = 4,
          .heads = 32,
          .kv_heads = 32,
          .seq_q = 8192,
          .seq_kv = 8192,
          .head_dim = head_dim};
}

double seconds_on(const GpuSpec& gpu, const AttentionCall& call) {
  static const PredictorWeights weights = load_weights(committed_weights());
  return AttentionPredictor(gpu, *weights.attention).duration(call).value();
}

/// The kernel has none of Blackwell's instructions: its SMs are Hopper's to it.
TEST(AttentionKernels, FlashAttention2GainsNothingFromTensorMemory) {
  const AttentionCall flash2 = call_of(AttentionImplementation::flash2, 128);
  const AttentionCall cudnn = call_of(AttentionImplementation::cudnn, 128);
  const GpuSpec hopper = half_test_gpu(kH100), blackwell = like_h100("10.0");
  EXPECT_NEAR(seconds_on(blackwell, flash2) / seconds_on(hopper, flash2), 1, 1e-9);
  EXPECT_LT(seconds_on(blackwell, cudnn), 0.75 * seconds_on(hopper, cudnn));
}

/// 72 elements are no multiple of the 16 that an instruction contracts: a kernel of Ampere, at a
/// quarter of the rate and padded to 96, where heads of 80 have one of their own.
TEST(AttentionKernels, TensorRtHasNoneForBlackwellWithHeadsOf72) {
  const GpuSpec gpu = like_h100("10.0");
  const double odd = seconds_on(gpu, call_of(AttentionImplementation::trtllm, 72));
  const double even = seconds_on(gpu, call_of(AttentionImplementation::trtllm, 80));
  EXPECT_GT(odd, 2 * even);
}

TEST(AttentionKernels, OnlyDataCentreGpusOfBlackwellLeaveEarlierInstructionsBehind) {
  using enum AttentionImplementation;
  const GpuSpec blackwell = like_h100("10.0"), rtx = like_h100("12.0");
  EXPECT_TRUE(runs_earlier_instructions(call_of(flash2, 128), blackwell));
  EXPECT_TRUE(runs_earlier_instructions(call_of(flash1, 128), blackwell));
  EXPECT_TRUE(runs_earlier_instructions(call_of(trtllm, 72), blackwell));
  EXPECT_FALSE(runs_earlier_instructions(call_of(trtllm, 80), blackwell));
  EXPECT_FALSE(runs_earlier_instructions(call_of(cudnn, 72), blackwell));
  EXPECT_FALSE(runs_earlier_instructions(call_of(flash2, 128), rtx));
  EXPECT_FALSE(runs_earlier_instructions(call_of(trtllm, 72), half_test_gpu(kH100)));
}

/// 4096 of 8192 FLOPs per clock and SM, and 2048.
TEST(AttentionKernels, EarlierInstructionsReachTheRateOfTheirGeneration) {
  EXPECT_DOUBLE_EQ(share_of_earlier_instructions(true), 0.5);
  EXPECT_DOUBLE_EQ(share_of_earlier_instructions(false), 0.25);
}

TEST(AttentionKernels, PaddingIsWhatTheKernelOfTheGpuDoes) {
  using enum AttentionImplementation;
  const GpuSpec blackwell = like_h100("10.0"), ada = half_test_gpu("L4");
  EXPECT_EQ(padding_of(call_of(trtllm, 80), true, blackwell, 0.75), 0);
  EXPECT_EQ(padding_of(call_of(trtllm, 72), false, blackwell, 0.5), 1);
  EXPECT_EQ(padding_of(call_of(trtllm, 80), false, ada, 0.5), 1);
  EXPECT_EQ(padding_of(call_of(flash2, 80), false, ada, 0.5), 1);
  EXPECT_EQ(padding_of(call_of(flash2, 32), false, ada, 0.5), 0);
  EXPECT_EQ(padding_of(call_of(flash2, 24), false, ada, 0.5), 0.2) << "8 of the 40 up to 64";
  EXPECT_EQ(padding_of(call_of(flash3, 80), true, ada, 0.5), 0.5);
  EXPECT_EQ(padding_of(call_of(trtllm, 80), true, ada, 0.75), 0.75);
}

/// Latent attention: zeros fill the values from 128 to 192; cuDNN multiplies what is there.
TEST(AttentionKernels, FlashAttention2MultipliesValuesAsWideAsQueries) {
  const GpuSpec gpu = half_test_gpu(kH100);
  for (const auto direction : {AttentionDirection::forward, AttentionDirection::backward}) {
    AttentionCall whole = call_of(AttentionImplementation::flash2, 192);
    whole.direction = direction;
    AttentionCall narrow = whole;
    narrow.value_dim = 128;
    EXPECT_DOUBLE_EQ(seconds_on(gpu, narrow), seconds_on(gpu, whole));
    narrow.implementation = whole.implementation = AttentionImplementation::cudnn;
    EXPECT_LT(seconds_on(gpu, narrow), 0.95 * seconds_on(gpu, whole));
  }
}

/// The next size that is built, beyond 128, is 192: half a step of padding was taken before.
TEST(AttentionKernels, FlashAttention2MultipliesBuiltSizesWhole) {
  const GpuSpec gpu = half_test_gpu("L4");
  const auto compute = [&](std::int64_t head_dim) {
    static const PredictorWeights weights = load_weights(committed_weights());
    return AttentionPredictor(gpu, *weights.attention)
        .predict(call_of(AttentionImplementation::flash2, head_dim))
        .compute_time.value();
  };
  EXPECT_GT(compute(136), 0.9 * compute(192));
}

TEST(AttentionKernels, SmsOfLittleSharedMemoryHaveSmallBlocks) {
  using enum AttentionImplementation;
  const GpuSpec ada = half_test_gpu("L4"), hopper = like_h100("9.0");
  AttentionCall causal = call_of(flash2, 128), full = causal;
  causal.causal = true;
  full.causal = false;
  EXPECT_EQ(most_queries_of_block(causal, ada, {}), 64);
  EXPECT_EQ(most_queries_of_block(full, ada, {}), kMostBlockQueries);
  EXPECT_EQ(most_queries_of_block(full, ada, "sglang/triton"), 64);
  EXPECT_EQ(most_queries_of_block(causal, ada, "vllm/vllm_flashinfer"), kMostBlockQueries);
  EXPECT_EQ(most_queries_of_block(causal, hopper, {}), kMostBlockQueries);
  causal.head_dim = 256;
  EXPECT_EQ(most_queries_of_block(causal, ada, "vllm/vllm_flashinfer"), 64);
  EXPECT_EQ(most_queries_of_block(call_of(trtllm, 64), ada, "trtllm/x"), 64);
  EXPECT_EQ(most_queries_of_block(call_of(trtllm, 64), hopper, "trtllm/x"), kMostBlockQueries);
  causal.head_dim = 64;
  EXPECT_EQ(most_queries_of_block(causal, ada, {}), kMostBlockQueries);
  // Two blocks of 64 where one of 128 was.
  EXPECT_EQ(attention_shape(full, 64).blocks, 2 * attention_shape(full).blocks);
}

/// Heads below 128 move as slowly as heads of 128, per token and head.
TEST(AttentionKernels, TensorRtRearrangesSmallHeadsNoFasterThanOf128) {
  using enum AttentionImplementation;
  const auto moved = [](AttentionImplementation implementation, std::int64_t head_dim) {
    return attention_shape(call_of(implementation, head_dim)).rearranged_bytes;
  };
  EXPECT_DOUBLE_EQ(moved(trtllm, 64), moved(trtllm, 128));
  EXPECT_DOUBLE_EQ(moved(trtllm, 256), 2 * moved(trtllm, 128));
  EXPECT_DOUBLE_EQ(moved(flash3, 64), moved(flash3, 128) / 2);
  EXPECT_DOUBLE_EQ(moved(flash3, 64), attention_shape(call_of(trtllm, 64)).query_bytes);
}

/// Blocks of 128 queries begin at the start or the middle of a step of 256 keys: they see the 128
/// keys ahead of them and themselves in two steps or in one, 384 keys on average; 64 for the start.
/// Both were timed with FlashAttention-2 on A100, where vLLM's calls take longer.
TEST(AttentionKernels, AnotherGpusProfileIsThatOfTheSameProgram) {
  const PredictorWeights weights = load_weights(committed_weights());
  GpuSpec gpu = half_test_gpu("A100-SXM4-80GB");
  gpu.id = "another";
  gpu.compute_capability = "8.9";
  AttentionCall call = call_of(AttentionImplementation::flash2, 128);
  call.causal = true;
  const auto of = [&](const char* stack) {
    return AttentionPredictor(gpu, *weights.attention, AttentionSetting::serving, stack);
  };
  EXPECT_NE(of("vllm/vllm_flash_attn_fa2").provenance(call).find("vllm/vllm_flash_attn on A100"),
            std::string::npos);
  EXPECT_NE(of("sglang/flash").provenance(call).find("sglang/flash_attention on A100"),
            std::string::npos);
  EXPECT_GT(of("vllm/x").duration(call), of("sglang/x").duration(call));
  EXPECT_EQ(of("vllm").duration(call), of("vllm/x").duration(call));
  EXPECT_EQ(of("another/x").duration(call), of("").duration(call));
}

TEST(AttentionKernels, AWindowIsSeenInWholeStepsOfTheKernel) {
  using enum AttentionImplementation;
  const auto keys = [](AttentionImplementation implementation, std::int64_t head_dim) {
    AttentionCall call = call_of(implementation, head_dim);
    call.causal = true;
    call.window = 128;
    return attention_shape(call).keys;
  };
  EXPECT_DOUBLE_EQ(keys(trtllm, 64), 384 + 64);
  EXPECT_DOUBLE_EQ(keys(trtllm, 128), 256 + 64);
  EXPECT_DOUBLE_EQ(keys(trtllm, 192), 256 + 64);
  EXPECT_DOUBLE_EQ(keys(flash2, 64), 256 + 64);
  EXPECT_DOUBLE_EQ(keys(flash3, 64), 320 + 64);  // blocks of 192 queries
}

}  // namespace
}  // namespace tessera
