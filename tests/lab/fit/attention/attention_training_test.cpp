#include "lab/fit/attention/attention_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/fit/attention/attention_errors.h"
#include "lab/fit/studies/attention_study.h"
#include "predictor/attention/attention_predictor.h"
#include "tests/lab/fit/attention/synthetic_attention.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/weights_bytes.h"

namespace tessera {
namespace {

constexpr const char* kGpu = "A100-SXM4-80GB";

/// Shared values are those that the fit starts from; the others are planted.
AttentionVector planted() {
  return {-2, -.7, -.25, .8, 1.2, -1, -.693, std::log(.6), 2, .5, 0, 0, 0, .12, 0, 0};
}

AttentionWeights train_text(const ScratchFolder& folder, const std::string& text) {
  return train_attention(read_attention(folder.write("attention.csv", kAttentionHeader + text)),
                         half_test_gpu);
}

TEST(AttentionTraining, FindsPlantedParameters) {
  const ScratchFolder folder;
  const AttentionWeights weights = train_text(folder, synthetic_attention(kGpu, planted()));
  ASSERT_EQ(weights.profiles.size(), 1U);
  const auto found = AttentionParameters<double>::from_unconstrained(
      std::span<const double>(weights.profiles[0].parameters));
  EXPECT_NEAR(found.efficiency, 0.6, 0.03);
  EXPECT_NEAR(found.quantisation, 1 / (1 + std::exp(-1.2)), 0.08);
  EXPECT_NEAR(found.launch, std::exp(2) * 1e-6, 1e-6);
  EXPECT_NEAR(found.grouped, 0.12, 0.04);
  EXPECT_LT(weights.profiles[0].spread, 0.02);
}

/// Of calls that rearrange heads of 64 as slowly as of 128, what is slow is not the product.
TEST(AttentionTraining, SmallHeadsOfTensorRtAreNoSlowerInTheirProducts) {
  const AttentionVector x = planted();
  const AttentionGpu traits = attention_gpu(half_test_gpu(kGpu));
  const auto p = AttentionParameters<double>::from_unconstrained(std::span<const double>(x));
  std::string text;
  for (const std::int64_t seq : {128, 256, 512, 1024, 2048, 4096})
    for (const std::int64_t batch : {1, 4, 16, 64})
      for (const std::int64_t head_dim : {64, 128}) {
        const AttentionCall call{.implementation = AttentionImplementation::trtllm,
                                 .batch = batch,
                                 .heads = 32,
                                 .kv_heads = 8,
                                 .seq_q = seq,
                                 .seq_kv = seq,
                                 .head_dim = head_dim};
        const double us = 1e6 * attention_time(attention_shape(call), traits, p, true).total;
        text += attention_row(kGpu, call, us, "trtllm/torch_flow");
      }
  const ScratchFolder folder;
  const AttentionWeights weights = train_text(folder, text);
  ASSERT_EQ(weights.profiles.size(), 1U);
  EXPECT_NEAR(weights.profiles[0].parameters[kHead64], 0, 0.02);
  // What all kernels share was fitted to the form without it.
  EXPECT_NEAR(weights.profiles[0].parameters[kConversion], x[kConversion], 0.1);
}

TEST(AttentionTraining, TwiceTheSameDataGivesTheSameBytes) {
  const ScratchFolder folder;
  const std::string text = synthetic_attention(kGpu, planted());
  EXPECT_TRUE(bytes_of(train_text(folder, text), folder) ==
              bytes_of(train_text(folder, text), folder));
}

TEST(AttentionTraining, HeldOutRowsAndTimingsOfBothPassesOnA100ChangeNothing) {
  const ScratchFolder folder;
  const std::string text = synthetic_attention(kGpu, planted());
  const AttentionTable table = read_attention(folder.write("a.csv", kAttentionHeader + text));
  AttentionTable changed = table;
  int held_out = 0;
  for (AttentionMeasurement& row : changed.rows)
    if (row.held_out && ++held_out > 0) row.seconds *= 3;
  ASSERT_GT(held_out, 10);
  AttentionMeasurement both = changed.rows.front();
  both.call.direction = AttentionDirection::forward_backward;
  both.by_eye = true;
  changed.rows.push_back(both);
  const AttentionWeights before = train_attention(table, half_test_gpu),
                         after = train_attention(changed, half_test_gpu);
  EXPECT_EQ(before.profiles[0].parameters, after.profiles[0].parameters);
  EXPECT_EQ(before.backward.at_2048, after.backward.at_2048);
}

TEST(AttentionTraining, TheBackwardRatioComesFromPairsOnH100) {
  const ScratchFolder folder;
  std::string text = synthetic_attention(kGpu, planted());
  for (const std::int64_t seq : {512, 1024, 2048, 4096, 8192}) {
    AttentionCall call{.heads = 16, .kv_heads = 16, .seq_q = seq, .seq_kv = seq, .head_dim = 128};
    text += attention_row("H100-SXM5-80GB", call, 100, "FlashAttention-2", "a.png");
    call.direction = AttentionDirection::forward_backward;
    const double ratio = 3 * std::pow(static_cast<double>(seq) / 2048, -0.1);
    text += attention_row("H100-SXM5-80GB", call, 100 * (1 + ratio), "FlashAttention-2", "a.png");
  }
  const AttentionWeights weights = train_text(folder, text);
  EXPECT_NEAR(weights.backward.at_2048, 3, 0.01);
  EXPECT_NEAR(weights.backward.slope, 0.1, 0.005);
}

TEST(AttentionTraining, TheRatioOfFlashAttention1ComesFromPairsWithFlashAttention2) {
  const ScratchFolder folder;
  std::string text = synthetic_attention(kGpu, planted());
  for (const std::int64_t head_dim : {64, 128}) {
    for (const std::int64_t seq : {512, 1024, 2048, 4096, 8192}) {
      AttentionCall call{.direction = AttentionDirection::forward_backward,
                         .heads = 16,
                         .kv_heads = 16,
                         .seq_q = seq,
                         .seq_kv = seq,
                         .head_dim = head_dim};
      const double ratio =
          1.8 * (head_dim == 128 ? 1.25 : 1) * std::exp(-0.2 * 512 / static_cast<double>(seq));
      text += attention_row(kGpu, call, 100, "FlashAttention-2", "a.png");
      text += attention_row(kGpu, call, 100 * ratio, "FlashAttention-1", "a.png");
    }
  }
  const Flash1Ratio ratio = train_text(folder, text).flash1;
  EXPECT_NEAR(std::exp(ratio.log_at_64), 1.8, 0.01);
  EXPECT_NEAR(ratio.per_doubling, std::log(1.25), 0.005);
  EXPECT_NEAR(ratio.at_512, 0.2, 0.005);
  EXPECT_NEAR(ratio(512, 128), 1.8 * 1.25 * std::exp(-0.2), 0.02);
}

TEST(AttentionTraining, AFewCallsCorrectACopiedEfficiency) {
  const ScratchFolder folder;
  AttentionVector slower = planted();
  slower[kEfficiency] -= 0.2;
  const AttentionTable table =
      read_attention(folder.write("a.csv", kAttentionHeader + synthetic_attention(kGpu, slower)));
  std::vector<const AttentionMeasurement*> calls;
  for (std::size_t i = 0; i < table.rows.size(); i += 8) calls.push_back(&table.rows[i]);
  const AttentionVector adapted =
      adapt_attention(planted(), attention_gpu(half_test_gpu(kGpu)), calls);
  EXPECT_NEAR(adapted[kEfficiency], slower[kEfficiency], 0.03);
  EXPECT_EQ(adapted[kGrouped], planted()[kGrouped]);
}

TEST(AttentionWeightsFile, RoundTripsAndRefusesDamage) {
  const ScratchFolder folder;
  const AttentionWeights weights = train_text(folder, synthetic_attention(kGpu, planted()));
  const std::string bytes = bytes_of(weights, folder);
  const AttentionWeights loaded = *load_weights(folder.path() / "weights.pb").attention;
  EXPECT_TRUE(bytes_of(loaded, folder) == bytes);
  EXPECT_EQ(loaded.profiles[0].parameters, weights.profiles[0].parameters);
  EXPECT_THROW(load_weights(folder.path() / "absent.pb"), InputError);
  EXPECT_THROW(load_weights(folder.write("cut.pb", bytes.substr(0, bytes.size() / 2))), InputError);
}

struct BadRow {
  const char* text;
  const char* problem;
};
class MalformedAttention : public testing::TestWithParam<BadRow> {};

TEST_P(MalformedAttention, NamesLineAndValue) {
  const ScratchFolder folder;
  const std::string good =
      "A100-SXM4-80GB,bf16,forward,1,4,8,8,128,512,512,100,0,sglang/flash_attention,x\n";
  const auto path = folder.write("attention.csv", kAttentionHeader + good + GetParam().text);
  try {
    read_attention(path);
    FAIL() << "accepted " << GetParam().text;
  } catch (const InputError& error) {
    ASSERT_EQ(error.problems().size(), 1U);
    EXPECT_EQ(error.problems()[0].where, path.string() + ":3");
    EXPECT_THAT(error.problems()[0].what, testing::HasSubstr(GetParam().problem));
    EXPECT_FALSE(error.problems()[0].hint.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, MalformedAttention,
    testing::Values(
        BadRow{"A,bf16,forward,1,4,8,8,128,512,512,0,0,trtllm/x,x\n", "latency_us = '0'"},
        BadRow{"A,bf16,forward,1,4,8,8,128,512,512,nan,0,trtllm/x,x\n", "latency_us = 'nan'"},
        BadRow{"A,bf16,forward,1,x,8,8,128,512,512,9,0,trtllm/x,x\n", "batch = 'x'"},
        BadRow{"A,bf16,forward,1,4,8,8,-1,512,512,9,0,trtllm/x,x\n", "head_dim = '-1'"},
        BadRow{"A,bf16,forward,2,4,8,8,128,512,512,9,0,trtllm/x,x\n", "causal = '2'"},
        BadRow{"A,bf16,sideways,1,4,8,8,128,512,512,9,0,trtllm/x,x\n", "direction = 'sideways'"},
        BadRow{"A,bf16,forward,1,4,8,8,128,512,512,9,0,unheard,x\n", "stack = 'unheard'"},
        BadRow{"A,bf16,forward,1,4,8,3,128,512,512,9,0,trtllm/x,x\n", "no multiple"},
        BadRow{"A,bf16,forward,1\n", "4 fields"}));

TEST(AttentionReader, NamesAMissingColumnAndAMissingFile) {
  const ScratchFolder folder;
  try {
    read_attention(folder.write("attention.csv", "gpu,causal\n"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(), 10U);
    EXPECT_THAT(error.what(), testing::HasSubstr("column batch is missing"));
  }
  EXPECT_THROW(read_attention(folder.path() / "absent.csv"), InputError);
}

TEST(AttentionReader, NoShapeIsHeldOutInOneStackAndFittedInAnother) {
  const ScratchFolder folder;
  const std::string rows = synthetic_attention(kGpu, planted());
  const AttentionTable table = read_attention(folder.write(
      "a.csv", kAttentionHeader + rows + synthetic_attention("H100-SXM5-80GB", planted())));
  const std::size_t half = table.rows.size() / 2;
  std::size_t held_out = 0;
  for (std::size_t i = 0; i < half; ++i) {
    EXPECT_EQ(table.rows[i].held_out, table.rows[i + half].held_out);
    held_out += table.rows[i].held_out ? 1 : 0;
  }
  EXPECT_GT(held_out, half / 10);
  EXPECT_LT(held_out, half / 3);
}

AttentionWeights shipped() {
  return *load_weights(committed_weights()).attention;
}

AttentionCall llama_call(AttentionImplementation implementation) {
  return {.implementation = implementation,
          .batch = 1,
          .heads = 32,
          .kv_heads = 8,
          .seq_q = 8192,
          .seq_kv = 8192,
          .head_dim = 128};
}

TEST(AttentionPredictor, ReproducesTheSharesOfPeakOfTheFigures) {
  // FlashAttention's figures at 16 k, head_dim 128, full, forward+backward: 203 TFLOP/s on A100 and
  // 338 on H100 (FA2). FA3 forward on H100: .65 of the peak, read by eye.
  AttentionCall call{.causal = false,
                     .heads = 16,
                     .kv_heads = 16,
                     .seq_q = 16384,
                     .seq_kv = 16384,
                     .head_dim = 128};
  call.direction = AttentionDirection::forward_backward;
  const AttentionPredictor a100(half_test_gpu(kGpu), shipped()),
      h100(half_test_gpu("H100-SXM5-80GB"), shipped());
  EXPECT_NEAR(attention_flops(call) / a100.duration(call).value() / 1e12, 203, 0.1 * 203);
  EXPECT_NEAR(attention_flops(call) / h100.duration(call).value() / 1e12, 338, 0.1 * 338);
  call.direction = AttentionDirection::forward;
  call.implementation = AttentionImplementation::flash3;
  EXPECT_NEAR(attention_flops(call) / h100.duration(call).value() / 989.4e12, 0.65, 0.065);
}

TEST(AttentionPredictor, FlashAttention1ReachesHalfOfItsSuccessor) {
  // The same figures, causal, forward+backward at 16 k on A100: 97 TFLOP/s at head_dim 64 and 83 at
  // 128, where FA2 reaches 171 and 189.
  const AttentionPredictor a100(half_test_gpu(kGpu), shipped());
  for (const auto& [head_dim, reached] : {std::pair{64, 97.0}, {128, 83.0}}) {
    const AttentionCall call{.implementation = AttentionImplementation::flash1,
                             .direction = AttentionDirection::forward_backward,
                             .heads = 2048 / head_dim,
                             .kv_heads = 2048 / head_dim,
                             .seq_q = 16384,
                             .seq_kv = 16384,
                             .head_dim = head_dim};
    EXPECT_NEAR(attention_flops(call) / a100.duration(call).value() / 1e12, reached, 0.1 * reached);
    EXPECT_THAT(a100.provenance(call), ::testing::HasSubstr("FlashAttention of 2022"));
  }
}

TEST(AttentionPredictor, TheImplementationDecidesOnHopper) {
  const AttentionPredictor h100(half_test_gpu("H100-SXM5-80GB"), shipped());
  EXPECT_LT(h100.duration(llama_call(AttentionImplementation::flash3)).value(),
            0.75 * h100.duration(llama_call(AttentionImplementation::flash2)).value());
}

TEST(AttentionPredictor, BothPassesAreTheSumOfEach) {
  const AttentionPredictor a100(half_test_gpu(kGpu), shipped());
  AttentionCall call = llama_call(AttentionImplementation::flash2);
  const double forward = a100.duration(call).value();
  call.direction = AttentionDirection::backward;
  const KernelPrediction backward = a100.predict(call);
  EXPECT_GT(backward.duration.value(), 2 * forward);
  call.direction = AttentionDirection::forward_backward;
  EXPECT_NEAR(a100.duration(call).value(), forward + backward.duration.value(), 1e-12);
  EXPECT_GT(backward.utilization, 0.3);
  EXPECT_LT(backward.utilization, 1);
}

TEST(AttentionPredictor, BlackwellUltraMakesTwiceTheExponentialsInTheSameTime) {
  GpuSpec usual = half_test_gpu("H100-SXM5-80GB"), ultra = usual;
  usual.id = ultra.id = "not-measured";
  ultra.architecture = Architecture::blackwell_ultra;
  ASSERT_EQ(attention_gpu(usual).exponentials, 16);
  ASSERT_EQ(attention_gpu(ultra).exponentials, 32);
  // A call without a mask whose time is arithmetic: half of the share of the exponentials that do
  // not overlap is gone, and as much of backward's time.
  AttentionCall call = llama_call(AttentionImplementation::flash2);
  call.causal = false;
  call.batch = 64;
  const AttentionParts before = AttentionPredictor(usual, shipped()).parts(call);
  const AttentionParts after = AttentionPredictor(ultra, shipped()).parts(call);
  const double gained = before.forward.total - after.forward.total;
  const double scores = before.forward.waves * before.shape.block_queries * before.shape.keys;
  const double exponential =
      before.parameters.exponentials / (kUsualExponentials * attention_gpu(usual).clock);
  EXPECT_NEAR(gained, scores * exponential / 2, 0.1 * scores * exponential / 2);
  call.direction = AttentionDirection::backward;
  const double backward = AttentionPredictor(usual, shipped()).duration(call).value() -
                          AttentionPredictor(ultra, shipped()).duration(call).value();
  EXPECT_NEAR(backward, gained, 1e-9 * gained);
}

TEST(AttentionPredictor, AServerTakesLonger) {
  const AttentionCall call = llama_call(AttentionImplementation::flash2);
  EXPECT_GT(
      AttentionPredictor(half_test_gpu(kGpu), shipped(), AttentionSetting::serving).duration(call),
      AttentionPredictor(half_test_gpu(kGpu), shipped()).duration(call));
}

TEST(AttentionPredictor, SpreadGrowsWithWhatWasNotMeasured) {
  AttentionCall call = llama_call(AttentionImplementation::flash2);
  const AttentionPredictor a100(half_test_gpu(kGpu), shipped()),
      a40(half_test_gpu("A40"), shipped());
  const double measured = a100.predict(call).spread.gpu;
  EXPECT_GT(a40.predict(call).spread.gpu, measured);
  EXPECT_THAT(a40.provenance(call), testing::HasSubstr("share of peak copied"));
  EXPECT_THAT(a40.provenance(call), testing::HasSubstr("A100"));
  call.direction = AttentionDirection::backward;
  EXPECT_GT(a100.predict(call).spread.gpu, measured);
  call.direction = AttentionDirection::forward;
  call.head_dim = 256;  // FlashAttention-2 was measured up to 128
  EXPECT_GT(a100.predict(call).spread.gpu, measured);
}

TEST(AttentionPredictor, RefusesKernelsThatTheGpuDoesNotRun) {
  const AttentionPredictor a100(half_test_gpu(kGpu), shipped());
  EXPECT_THROW(a100.duration(llama_call(AttentionImplementation::flash3)), InputError);
  EXPECT_THROW(AttentionPredictor(half_test_gpu("V100-PCIe-32GB"), shipped()), InputError);
  EXPECT_THROW(AttentionPredictor(half_test_gpu(kGpu), AttentionWeights{}), InputError);
}

TEST(AttentionPredictor, SaysWhenACallIsLargerThanAllThatWereFitted) {
  AttentionWeights weights = shipped();
  weights.range = {8, 64, 4096, 128};
  const AttentionPredictor a100(half_test_gpu(kGpu), weights);
  AttentionCall call{
      .batch = 8, .heads = 64, .kv_heads = 64, .seq_q = 4096, .seq_kv = 4096, .head_dim = 128};
  const KernelPrediction inside = a100.predict(call);
  EXPECT_FALSE(inside.extrapolated);
  call.seq_q = call.seq_kv = 16384;
  const KernelPrediction beyond = a100.predict(call);
  EXPECT_EQ(beyond.extrapolated.input, "sequence");
  EXPECT_DOUBLE_EQ(beyond.extrapolated.factor, 4);
  EXPECT_DOUBLE_EQ(beyond.spread.shape, std::hypot(inside.spread.shape, 0.2));  // two doublings
}

TEST(CommittedAttention, FollowsFromTheMeasurementsAndMeetsItsTargets) {
  const auto file = measurements_folder() / "kernels/attention.csv";
  if (!std::filesystem::exists(file))
    GTEST_SKIP() << "no measurements in " << measurements_folder() << "; set TESSERA_MEASUREMENTS";
  const ScratchFolder folder;
  const AttentionTable table = read_attention(file);
  const AttentionWeights weights = train_attention(table, half_test_gpu);
#ifdef NDEBUG
  EXPECT_TRUE(bytes_of(weights, folder) == bytes_of(shipped(), folder))
      << "train and commit anew: tessera train --model attention";
#endif
  ErrorGroups errors;
  for (const AttentionMeasurement& row : table.rows)
    if (row.call.direction == AttentionDirection::forward_backward && row.by_eye && row.fused)
      errors.add(row.gpu,
                 AttentionPredictor(half_test_gpu(row.gpu), weights).duration(row.call).value(),
                 row.seconds);
  EXPECT_LT(errors.mean(kGpu), 12);  // fitted to nothing of it
  EXPECT_GT(errors.mean(kGpu), 0);
  EXPECT_LT(errors.mean("H100-SXM5-80GB"), 12);
}

}  // namespace
}  // namespace tessera
