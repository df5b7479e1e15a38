// Megatron's loss over words: an operator at a time, compiled pieces, or Transformer Engine's
// kernels.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

constexpr std::int64_t kWords = 1 << 17, kTokens = 2048;

ModelSpec llama() {
  ModelSpec model = test::llama2_7b();
  model.layers = 2;
  model.hidden = 512;
  model.heads = model.kv_heads = 4;
  model.ffn = 1024;
  model.vocab = kWords;
  return model;
}

StepOptions step_of(LossFusion fusion, int tensor = 1) {
  StepOptions step =
      test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 1, kTokens));
  step.layout.tensor = tensor;
  step.framework.loss_in_place = true;
  step.framework.loss_fusion = fusion;
  return step;
}

Block head_of(LossFusion fusion, int tensor = 1) {
  return build_model_graph(llama(), step_of(fusion, tensor)).blocks[2];
}

bool is_of_loss(const GraphOp& op) {
  return op.kind == GraphOpKind::kernel && op.name.starts_with("loss.");
}

/// Traffic of the loss's kernels for each logit.
double bytes_per_logit(const std::vector<GraphOp>& ops) {
  double bytes = 0;
  for (const GraphOp& op : ops)
    if (is_of_loss(op)) bytes += static_cast<double>(op.kernel.bytes().value());
  return bytes / (static_cast<double>(kTokens) * kWords);
}

/// Most bytes of the head that live at once, for each logit.
double peak_per_logit(const Block& head) {
  std::int64_t live = 0, most = 0;
  for (const auto* ops : {&head.forward, &head.backward}) {
    for (const GraphOp& op : *ops) {
      live += op.allocated.value();
      most = std::max(most, live);
      live -= op.freed.value();
    }
  }
  return static_cast<double>(most) / (static_cast<double>(kTokens) * kWords);
}

TEST(LossFusion, MovesFewerBytesOfEachLogit) {
  // To fp32 6, max 4, sub 8, exp 8, sum 4, div 8; backward: scale 8, to 16 bits 6.
  const Block separate = head_of(LossFusion::separate);
  EXPECT_NEAR(bytes_per_logit(separate.forward), 38, 0.1);
  EXPECT_NEAR(bytes_per_logit(separate.backward), 14, 0.1);
  // Copy with maxima 6, exp 4 and twice 4, div 8; backward: 8, to 16 bits 6.
  const Block native = head_of(LossFusion::native);
  EXPECT_NEAR(bytes_per_logit(native.forward), 26, 0.1);
  EXPECT_NEAR(bytes_per_logit(native.backward), 14, 0.1);
  // Statistics 2, gradient 4; backward: scale 4.
  const Block engine = head_of(LossFusion::te);
  EXPECT_NEAR(bytes_per_logit(engine.forward), 6, 0.1);
  EXPECT_NEAR(bytes_per_logit(engine.backward), 4, 0.1);
}

TEST(LossFusion, OfTransformerEngineHoldsTheLogitsAlone) {
  // The table's gradient adds 512 numbers for each word, of which 2048 tokens have logits: a
  // quarter of a number a logit, in fp32 one byte.
  EXPECT_NEAR(peak_per_logit(head_of(LossFusion::te)), 2, 1.1);
  EXPECT_NEAR(peak_per_logit(head_of(LossFusion::separate)), 6, 1.1);  // 16 bits and fp32
  EXPECT_NEAR(peak_per_logit(head_of(LossFusion::native)), 10, 1.1);   // and fp32 once more
}

TEST(LossFusion, ExchangesNumbersOfEachToken) {
  const auto collectives = [](LossFusion fusion) {
    std::string text;
    for (const GraphOp& op : head_of(fusion, 4).forward)
      if (op.kind == GraphOpKind::collective && op.name.starts_with("loss"))
        text += std::to_string(op.bytes.value() / kTokens) + " ";
    return text;
  };
  EXPECT_EQ(collectives(LossFusion::separate), "4 4 4 ");
  EXPECT_EQ(collectives(LossFusion::native), "4 8 ");
  EXPECT_EQ(collectives(LossFusion::te), "48 ");  // three numbers of each of four ranks
}

TEST(LossFusion, IsMegatronsAndCompiledLossesAreNot) {
  const ModelSpec model = llama();
  EXPECT_EQ(test::refusal(model, step_of(LossFusion::te)), "");
  StepOptions eager =
      test::in(Precision::bf16, test::single_gpu(test::hf_eager(), StepMode::training, 1, kTokens));
  eager.framework.loss_fusion = LossFusion::native;
  EXPECT_THAT(test::refusal(model, eager), ::testing::HasSubstr("training.framework.loss_fusion"));
  StepOptions compiled = step_of(LossFusion::separate);
  compiled.framework.compiled_loss = true;
  EXPECT_THAT(test::refusal(model, compiled),
              ::testing::HasSubstr("training.framework.compiled_loss"));
}

TEST(FusedRouter, ChoosesInOneKernelEachWay) {
  ModelSpec model = llama();
  model.experts = 8;
  model.experts_per_token = 2;
  const auto kernels = [&](bool fused) {
    StepOptions step = step_of(LossFusion::separate);
    step.framework.fused_router = fused;
    const Block layer = build_model_graph(model, step).blocks[1];
    std::string text;
    for (const auto* ops : {&layer.forward, &layer.backward})
      for (const GraphOp& op : *ops)
        if (op.kind == GraphOpKind::kernel &&
            (op.name.find("router.float") != std::string::npos ||
             op.name.find("router.softmax") != std::string::npos ||
             op.name.find("router.top_k") != std::string::npos))
          text += op.name.substr(op.name.find("router.") + 7) + " ";
    return text;
  };
  EXPECT_EQ(kernels(true), "top_k top_k.backward ");
  EXPECT_EQ(kernels(false),
            "float softmax top_k top_k.sort top_k.zero top_k.backward softmax.mul softmax.backward "
            "float.backward ");
}

}  // namespace
}  // namespace tessera
