// Adapters beside the linear layers of transformers' Llama, as peft has them.
#include <algorithm>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kTokens = 512, kRank = 16, kHidden = 256, kFfn = 512;

ModelSpec small() {
  ModelSpec m = test::llama2_7b();
  m.layers = 2;
  m.hidden = kHidden;
  m.heads = m.kv_heads = 4;
  m.head_dim = 64;
  m.ffn = kFfn;
  m.vocab = 1024;
  return m;
}

StepOptions full() {
  return test::in(Precision::bf16,
                  test::single_gpu(test::hf_eager(), StepMode::training, 1, kTokens));
}
StepOptions adapted(LoraTargets targets = LoraTargets::all) {
  StepOptions step = full();
  step.lora_rank = kRank;
  step.lora_targets = targets;
  return step;
}

Block layer(const StepOptions& step) {
  return build_model_graph(small(), step).blocks.at(1);
}

TEST(PeftAdapters, TrainTwoFactorsBesideEachOfSevenLayers) {
  // q, k, v and output; gate and up; down.
  const std::int64_t attention = 4 * (kHidden + kHidden);
  const std::int64_t feed_forward = 2 * (kHidden + kFfn) + (kFfn + kHidden);
  EXPECT_EQ(layer(adapted()).parameters, kRank * (attention + feed_forward));
  EXPECT_EQ(layer(adapted()).parameter_sizes.size(), 2u * 7);
  EXPECT_EQ(layer(adapted(LoraTargets::attention)).parameters, kRank * attention);
}

TEST(PeftAdapters, StandBesideTheLayersThatAreNamed) {
  StepOptions step = adapted();
  step.lora_modules = {"q_proj", "v_proj", "down_proj"};
  EXPECT_EQ(layer(step).parameters, kRank * (2 * (kHidden + kHidden) + (kFfn + kHidden)));
  EXPECT_EQ(total(layer(step).forward).kernels, total(layer(full()).forward).kernels + 3 * 4);
}

TEST(PeftAdapters, FreezeEmbeddingAndHead) {
  const ModelGraph graph = build_model_graph(small(), adapted());
  EXPECT_EQ(graph.blocks.at(0).parameters, 0);
  EXPECT_EQ(graph.blocks.at(2).parameters, 0);
}

TEST(PeftAdapters, RunTwoProductsACopyAndASumMore) {
  EXPECT_EQ(total(layer(adapted()).forward).kernels, total(layer(full()).forward).kernels + 7 * 4);
  EXPECT_EQ(total(layer(adapted()).forward).gemm_flops.value(),
            total(layer(full()).forward).gemm_flops.value() +
                2.0 * kTokens * static_cast<double>(layer(adapted()).parameters));
}

// Of a frozen layer backward needs the data gradient alone: half of the products.
TEST(PeftAdapters, LeaveOutTheGradientsOfWeights) {
  const double weights = 4.0 * kHidden * kHidden + 3.0 * kHidden * kFfn;
  const double adapters = static_cast<double>(layer(adapted()).parameters);
  EXPECT_EQ(total(layer(adapted()).backward).gemm_flops.value(),
            total(layer(full()).backward).gemm_flops.value() - 2.0 * kTokens * weights +
                4.0 * kTokens * adapters);
}

// Inputs of layers are held for the factors; the narrow results are new. A norm's rows are held for
// the gradient of its weight alone, which is frozen.
TEST(PeftAdapters, HoldTheNarrowResults) {
  EXPECT_EQ(layer(adapted()).saved,
            layer(full()).saved + Bytes(2 * 7 * kTokens * kRank - 2 * 2 * kTokens * kHidden));
}

TEST(PeftAdapters, AreRefusedWhereLayersAreOthersThanThese) {
  StepOptions split = adapted();
  split.layout.tensor = 2;
  EXPECT_THAT(test::refusal(small(), split), HasSubstr("use parallelism.tensor: 1"));
  StepOptions joined = adapted();
  joined.framework.fused_gate = true;
  EXPECT_THAT(test::refusal(small(), joined), HasSubstr("which are one layer here"));
  StepOptions dora = adapted();
  dora.dora = true;
  dora.base_weights = BaseWeights::nf4;
  EXPECT_THAT(test::refusal(small(), dora), HasSubstr("training.dora: of weights in 4 bits"));
  StepOptions megatron = adapted();
  megatron.framework = test::megatron();
  megatron.lora_dropout = 0.1;
  EXPECT_THAT(test::refusal(small(), megatron), HasSubstr("training.lora_dropout"));
  ModelSpec experts = small();
  experts.experts = 4;
  experts.experts_per_token = 2;
  EXPECT_THAT(test::refusal(experts, adapted()), HasSubstr("of models with experts"));
  EXPECT_EQ(test::refusal(small(), adapted()), "");
}

/// Of seven matrices of a layer.
constexpr std::int64_t kWeights = 4 * kHidden * kHidden + 3 * kHidden * kFfn;
/// Inputs and outputs of seven layers: q, k, v, output, gate and up read the hidden size, down the
/// feed-forward's.
constexpr std::int64_t kInputs = 6 * kHidden + kFfn, kOutputs = 5 * kHidden + 2 * kFfn;
/// Layers that read the same keep one copy of it; with one of their own each keeps another: two for
/// q, k and v, one for gate and up.
constexpr std::int64_t kOwnCopies = 3 * kHidden;

StepOptions in_fp32() {
  StepOptions step = adapted();
  step.formats.parameters = Precision::fp32;
  step.base_weights = BaseWeights::in_precision;
  return step;
}

// peft casts inputs to the factors' format, autocast casts them back: two kernels an adapter, and
// one for each factor.
TEST(AdaptersInFp32, CastWhatTheyReadTwice) {
  const Block block = layer(in_fp32()), plain = layer(adapted());
  EXPECT_EQ(total(block.forward).kernels, total(plain.forward).kernels + 7 * 2 + 7 * 2);
  EXPECT_EQ(block.buffers, plain.buffers);  // the frozen weights stay in 16 bits
  EXPECT_EQ(block.saved, plain.saved + Bytes(2 * kTokens * kOwnCopies + 2 * plain.parameters));
}

TEST(AdaptersInFp32, LeaveEmbeddingAndHeadIn16Bits) {
  const ModelGraph ours = build_model_graph(small(), in_fp32());
  const ModelGraph plain = build_model_graph(small(), adapted());
  EXPECT_EQ(ours.blocks.at(0).buffers, plain.blocks.at(0).buffers);
  EXPECT_EQ(ours.blocks.at(2).buffers, plain.blocks.at(2).buffers);
}

TEST(AdaptersInFp32, AreRefusedWhereSharesOfBothAreGathered) {
  StepOptions sharded = in_fp32();
  sharded.layout.data = 2;
  sharded.global_batch = 2;
  sharded.data_parallel.sharding = Sharding::parameters;
  EXPECT_THAT(test::refusal(small(), sharded), HasSubstr("in another format than adapters"));
}

// Each adapter drops numbers of its own: a kernel each way, a mask of bytes and a copy that is
// kept.
TEST(DroppedInputs, AreAKernelAMaskAndACopyForEachAdapter) {
  StepOptions step = adapted();
  step.lora_dropout = 0.05;
  const Block block = layer(step), plain = layer(adapted());
  EXPECT_EQ(total(block.forward).kernels, total(plain.forward).kernels + 7);
  EXPECT_EQ(total(block.backward).kernels, total(plain.backward).kernels + 7);
  EXPECT_EQ(block.saved, plain.saved + Bytes(kTokens * (kInputs + 2 * kOwnCopies)));
}

StepOptions stretched() {
  StepOptions step = adapted();
  step.dora = true;
  return step;
}

TEST(Dora, TrainsANumberForEachOutputToo) {
  EXPECT_EQ(layer(stretched()).parameters, layer(adapted()).parameters + kOutputs);
}

// The unit matrix is two kernels and runs through both factors; a scaled copy, the sum with the
// weight, its lengths; the ratio, that less one, two products with it and their sum.
TEST(Dora, MultipliesAUnitMatrixInEveryForwardPass) {
  const Block block = layer(stretched()), plain = layer(adapted());
  EXPECT_EQ(total(block.forward).kernels, total(plain.forward).kernels + 7 * 12);
  const std::int64_t units = 6 * kHidden * kHidden + kFfn * kFfn;
  EXPECT_EQ(total(block.forward).gemm_flops.value(),
            total(plain.forward).gemm_flops.value() +
                2.0 * static_cast<double>(kRank * (units + kWeights)));
}

// What layer and adapter gave, and three numbers for each output.
TEST(Dora, KeepsWhatLayerAndAdapterGave) {
  EXPECT_EQ(layer(stretched()).saved,
            layer(adapted()).saved + Bytes(2 * (2 * kTokens * kOutputs + 3 * kOutputs)));
}

// The layer runs again, on what was not dropped.
TEST(Dora, RunsTheLayerTwiceWhereInputsAreDropped) {
  StepOptions step = stretched();
  step.lora_dropout = 0.05;
  EXPECT_EQ(total(layer(step).forward).gemm_flops.value(),
            total(layer(stretched()).forward).gemm_flops.value() + 2.0 * kTokens * kWeights);
  EXPECT_EQ(total(layer(step).backward).gemm_flops.value(),
            total(layer(stretched()).backward).gemm_flops.value() + 2.0 * kTokens * kWeights);
}

TEST(Dora, TakesTheBiasFromWhatTheLayerGave) {
  ModelSpec biased = small();
  biased.qkv_bias = true;
  EXPECT_EQ(total(build_model_graph(biased, stretched()).blocks.at(1).forward).kernels,
            total(layer(stretched()).forward).kernels + 3);
}

StepOptions quantized(BaseWeights weights) {
  StepOptions step = adapted();
  step.base_weights = weights;
  return step;
}

// Half a byte a number and 4 bytes for every 64 (QLoRA, section 3): .5625 bytes in place of 2.
TEST(QuantizedBaseWeights, TakeHalfAByteAndAScaleForEvery64) {
  EXPECT_EQ(
      layer(quantized(BaseWeights::nf4)).buffers,
      layer(adapted()).buffers - Bytes(2 * kWeights) + Bytes(kWeights / 2 + 4 * kWeights / 64));
}

// A byte for every 64 numbers, and 4 bytes for every 256 of these: four matrices of 1,024 scales,
// three of 2,048.
TEST(QuantizedBaseWeights, TakeAByteForEvery64WithDoubleQuantization) {
  EXPECT_EQ(layer(quantized(BaseWeights::nf4_double_quant)).buffers,
            layer(adapted()).buffers - Bytes(2 * kWeights) +
                Bytes(kWeights / 2 + kWeights / 64 + 4 * (4 * 4 + 3 * 8)));
}

// One kernel a matrix, two more where scales are quantized, in forward and again in backward, which
// keeps no 16-bit weights.
TEST(QuantizedBaseWeights, AreMade16BitAheadOfEveryProduct) {
  const Block plain = layer(adapted());
  for (const auto& [weights, kernels] :
       {std::pair(BaseWeights::nf4, 1), std::pair(BaseWeights::nf4_double_quant, 3)}) {
    const Block block = layer(quantized(weights));
    EXPECT_EQ(total(block.forward).kernels, total(plain.forward).kernels + 7 * kernels);
    EXPECT_EQ(total(block.backward).kernels, total(plain.backward).kernels + 7 * kernels);
    EXPECT_EQ(total(block.forward).gemm_flops, total(plain.forward).gemm_flops);
    EXPECT_EQ(total(block.backward).gemm_flops, total(plain.backward).gemm_flops);
    EXPECT_EQ(block.saved, plain.saved);
  }
}

TEST(QuantizedBaseWeights, ReadCodesAndScalesAndWriteNumbersOfTwoBytes) {
  const Block block = layer(quantized(BaseWeights::nf4));
  const auto op = std::ranges::find(block.forward, "mlp.down.weight.dequantize", &GraphOp::name);
  ASSERT_NE(op, block.forward.end());
  constexpr std::int64_t kNumbers = kHidden * kFfn;
  EXPECT_EQ(op->kernel.bytes_read, Bytes(kNumbers / 2 + 4 * kNumbers / 64));
  EXPECT_EQ(op->kernel.bytes_written, Bytes(2 * kNumbers));
}

// Autocast keeps no copies of frozen weights: fp32 weights are cast ahead of their products.
TEST(FrozenWeights, OfFp32AreCastFor16BitProducts) {
  StepOptions step = adapted();
  step.formats.parameters = Precision::fp32;
  // Seven matrices and two norms; 14 factors, and twice what each adapter reads.
  EXPECT_EQ(total(layer(step).forward).kernels,
            total(layer(adapted()).forward).kernels + 9 + 14 + 14);
}

TEST(QuantizedBaseWeights, AreRefusedByNameWhereTheyAreNotSimulated) {
  StepOptions trained = quantized(BaseWeights::nf4);
  trained.lora_rank = 0;
  EXPECT_THAT(test::refusal(small(), trained), HasSubstr("there are no adapters"));
  StepOptions sharded = quantized(BaseWeights::nf4);
  sharded.layout.data = 2;
  sharded.global_batch = 2;
  sharded.data_parallel.sharding = Sharding::parameters;
  EXPECT_THAT(test::refusal(small(), sharded), HasSubstr("divided over ranks"));
  StepOptions megatron = quantized(BaseWeights::nf4);
  megatron.framework = test::megatron();
  EXPECT_THAT(test::refusal(small(), megatron), HasSubstr("use framework: hf-eager"));
  EXPECT_EQ(test::refusal(small(), quantized(BaseWeights::nf4)), "");
}

}  // namespace
}  // namespace tessera
