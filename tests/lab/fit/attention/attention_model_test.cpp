#include "predictor/attention/attention_model.h"

#include <array>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/fit/attention/attention_fit.h"
#include "lab/fit/dual.h"
#include "tests/predictor/tensor/half_gpus.h"

namespace tessera {
namespace {

/// 64 heads of 128 over 2 x 2048 tokens.
AttentionCall call_of(bool causal = true) {
  return {.causal = causal,
          .batch = 2,
          .heads = 64,
          .kv_heads = 64,
          .seq_q = 2048,
          .seq_kv = 2048,
          .head_dim = 128};
}

/// Values like the fitted ones, no two alike.
AttentionVector plausible() {
  AttentionVector x{-2.1, -.3, -.4, .9, .1, -.8, -.6, -.3, 1.5, .7, .12, .2, .3, .15, .4, .08};
  return x;
}

double seconds_of(const AttentionCall& call, const AttentionVector& x, bool served = false,
                  const char* gpu = "A100-SXM4-80GB") {
  const auto p = AttentionParameters<double>::from_unconstrained(std::span<const double>(x));
  return attention_time(attention_shape(call), attention_gpu(half_test_gpu(gpu)), p, served).total;
}

TEST(Attention, CountsTheArithmeticOfEachPass) {
  // 4 * 2 * 64 * 2048^2 * 128 = 274.878e9; half of it under the mask; backward 2.5 times that.
  EXPECT_DOUBLE_EQ(attention_flops(call_of(false)), 4.0 * 2 * 64 * 2048 * 2048 * 128);
  EXPECT_DOUBLE_EQ(attention_flops(call_of(true)), attention_flops(call_of(false)) / 2);
  AttentionCall backward = call_of();
  backward.direction = AttentionDirection::backward;
  EXPECT_DOUBLE_EQ(attention_flops(backward), 2.5 * attention_flops(call_of()));
  AttentionCall both = call_of();
  both.direction = AttentionDirection::forward_backward;
  EXPECT_DOUBLE_EQ(attention_flops(both), 3.5 * attention_flops(call_of()));
}

TEST(Attention, CountsEachOperandOnce) {
  // Q, K, V, O of 2 * 2048 * 64 * 128 elements, 2 bytes each.
  const double tensor = 2.0 * 2 * 2048 * 64 * 128;
  EXPECT_DOUBLE_EQ(attention_bytes(call_of()), 4 * tensor);
  AttentionCall grouped = call_of();
  grouped.kv_heads = 8;  // K and V shrink to an eighth
  EXPECT_DOUBLE_EQ(attention_bytes(grouped), 2 * tensor + 2 * tensor / 8);
}

TEST(Attention, BlocksAndKeysFollowFromTheTiles) {
  const AttentionShape full = attention_shape(call_of(false));
  EXPECT_DOUBLE_EQ(full.blocks, 2 * 64 * 16);  // 2048 queries = 16 blocks of 128
  EXPECT_DOUBLE_EQ(full.keys, 2048 + 64);      // all, and the prologue
  const AttentionShape causal = attention_shape(call_of(true));
  EXPECT_DOUBLE_EQ(causal.keys, 1024 + 64 + 6 + 64);  // half, half a diagonal block, prologue
  EXPECT_DOUBLE_EQ(causal.longest, 2048 + 64);
  AttentionCall odd = call_of(false);
  odd.seq_q = odd.seq_kv = 1300;
  EXPECT_DOUBLE_EQ(attention_shape(odd).blocks, 2 * 64 * 11);
  EXPECT_DOUBLE_EQ(attention_shape(odd).keys, 1344 + 64);  // 21 key blocks of 64
}

TEST(Attention, FlashAttention3HasLargerBlocksForSmallHeads) {
  AttentionCall call = call_of(false);
  call.implementation = AttentionImplementation::flash3;
  EXPECT_DOUBLE_EQ(attention_shape(call).blocks, 2 * 64 * 16);
  call.head_dim = 64;  // 2048 / 192 = 10.7
  EXPECT_DOUBLE_EQ(attention_shape(call).blocks, 2 * 64 * 11);
}

TEST(Attention, PackedDocumentsAreABatchOfShorterSequences) {
  AttentionCall packed = call_of();
  packed.mean_document = 512;
  AttentionCall apart = call_of();
  apart.batch = 8;
  apart.seq_q = apart.seq_kv = 512;
  EXPECT_DOUBLE_EQ(attention_flops(packed), attention_flops(apart));
  EXPECT_DOUBLE_EQ(seconds_of(packed, plausible()), seconds_of(apart, plausible()));
}

TEST(Attention, LaterQueriesSeeTheEarlierKeys) {
  AttentionCall suffix = call_of();
  suffix.seq_q = 256;  // of 2048 keys: 1792 earlier ones, then the diagonal
  EXPECT_DOUBLE_EQ(attention_shape(suffix).keys, 1792 + 128 + 64 + 6 + 64);
}

class ImpossibleCall
    : public testing::TestWithParam<std::pair<const char*, std::function<void(AttentionCall&)>>> {};

TEST_P(ImpossibleCall, IsRefusedWithItsReason) {
  AttentionCall call = call_of();
  GetParam().second(call);
  try {
    attention_shape(call);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().first), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Reasons, ImpossibleCall,
    testing::Values(std::pair{"below 1", [](AttentionCall& c) { c.head_dim = 0; }},
                    std::pair{"no multiple", [](AttentionCall& c) { c.kv_heads = 7; }},
                    std::pair{"fewer keys", [](AttentionCall& c) { c.seq_kv = 1024; }},
                    std::pair{"longer than the sequence",
                              [](AttentionCall& c) { c.mean_document = 4096; }},
                    std::pair{"packed documents", [](AttentionCall& c) {
                                c.mean_document = 64;
                                c.seq_kv = 4096;
                              }}));

TEST(AttentionModel, TimeOfALargeCallByHand) {
  // Everything but products off: 512 * 2112 keys * 2048 blocks of 128 queries at 0.5 of the peak.
  AttentionVector x{};
  x[kComputeNorm] = 3;  // sharp: 1 + e^3
  x[kMemoryNorm] = 3;
  x[kMemoryShare] = x[kLongestBlock] = x[kExponentials] = x[kLaunch] = -30;
  x[kQuantisation] = x[kPadding] = -30;
  x[kEfficiency] = std::log(0.5);
  const double flops = 4.0 * 128 * 128 * 2112 * 2048;
  EXPECT_NEAR(seconds_of(call_of(false), x), flops / (0.5 * 312e12), 1e-9);
  x[kQuantisation] = 30;  // 2048 / 108 = 18.96 waves take the time of 19
  EXPECT_NEAR(seconds_of(call_of(false), x), flops / (0.5 * 312e12) * 19 / (2048. / 108), 1e-9);
}

TEST(AttentionModel, TheMaskSavesTimeButLessThanHalf) {
  for (const std::int64_t seq : {256, 1024, 4096, 16384}) {
    AttentionCall full = call_of(false), causal = call_of(true);
    full.seq_q = full.seq_kv = causal.seq_q = causal.seq_kv = seq;
    AttentionVector x = plausible();
    x[kCausal] = 0;
    const double ratio = seconds_of(causal, x) / seconds_of(full, x);
    EXPECT_LT(ratio, 1) << seq;
    EXPECT_GT(ratio, 0.5) << seq;
  }
}

TEST(AttentionModel, MoreKeysNeverTakeLess) {
  for (const bool causal : {true, false}) {
    double before = 0;
    for (std::int64_t seq = 16; seq < 9000; seq += 16) {
      AttentionCall call = call_of(causal);
      call.seq_q = call.seq_kv = seq;
      const double now = seconds_of(call, plausible());
      EXPECT_GE(now, before * (1 - 1e-12)) << seq;
      before = now;
    }
  }
}

TEST(AttentionModel, GroupedHeadsMoveLess) {
  AttentionVector x = plausible();
  x[kGrouped] = 0;  // traffic alone
  AttentionCall grouped = call_of();
  grouped.kv_heads = 8;
  EXPECT_LT(seconds_of(grouped, x), seconds_of(call_of(), x));
  // A server writes K and V to its cache: an eighth of them is an eighth of that.
  EXPECT_LT(seconds_of(grouped, x, true) - seconds_of(grouped, x),
            seconds_of(call_of(), x, true) - seconds_of(call_of(), x));
}

TEST(AttentionModel, PaddedHeadsCostBetweenTheirSizeAndTheBuiltOne) {
  AttentionVector x = plausible();
  x[kHead64] = 0;
  const auto at = [&](std::int64_t head_dim) {
    AttentionCall call = call_of(false);
    call.head_dim = head_dim;
    return seconds_of(call, x);
  };
  EXPECT_GT(at(80), at(72));
  EXPECT_LT(at(72), at(96));
  AttentionVector unpadded = x;
  unpadded[kPadding] = -30;
  AttentionCall call = call_of(false);
  call.head_dim = 72;
  EXPECT_LT(seconds_of(call, unpadded), at(72));
}

TEST(AttentionModel, GradientsEqualFiniteDifferences) {
  constexpr int kN = kAttentionParameters;
  constexpr double kStep = 1e-6;
  AttentionCall few = call_of();
  few.batch = 1;
  few.heads = few.kv_heads = 3;  // fewer blocks than SMs
  AttentionCall wide = call_of(), widest = call_of(), narrow = call_of(false), odd = call_of(false);
  wide.head_dim = 192;
  widest.head_dim = 256;
  widest.kv_heads = 16;
  narrow.head_dim = 64;
  odd.head_dim = 72;
  const AttentionGpu gpu = attention_gpu(half_test_gpu("H100-SXM5-80GB"));
  for (const AttentionCall& call : {call_of(), few, wide, widest, narrow, odd}) {
    const AttentionShape shape = attention_shape(call);
    std::array<Dual<kN>, kN> duals;
    for (int i = 0; i < kN; ++i) duals[i] = Dual<kN>::variable(plausible()[i], i);
    const Dual<kN> exact =
        attention_residual<Dual<kN>>(shape, 1e-3, gpu, true, std::span<const Dual<kN>>(duals));
    double largest = 0;
    for (int i = 0; i < kN; ++i) {
      AttentionVector up = plausible(), down = plausible();
      up[i] += kStep;
      down[i] -= kStep;
      const double difference = (attention_residual<double>(shape, 1e-3, gpu, true, up) -
                                 attention_residual<double>(shape, 1e-3, gpu, true, down)) /
                                (2 * kStep);
      EXPECT_NEAR(exact.derivatives(i), difference, 1e-6) << "parameter " << i;
      largest = std::max(largest, std::abs(difference));
    }
    EXPECT_GT(largest, 0.1);
  }
}

TEST(AttentionModel, AGpuWithoutTensorCoresIsRefused) {
  EXPECT_THROW(attention_gpu(half_test_gpu("P4")), InputError);
}

}  // namespace
}  // namespace tessera
