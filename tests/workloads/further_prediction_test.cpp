// Several layers that predict further tokens (multi-token prediction).
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/hugging_face/llama_parameters.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

/// With experts, as models that predict further have them.
ModelSpec predicting(std::int64_t further) {
  ModelSpec m = test::llama2_7b();
  m.layers = 2;
  m.hidden = 256;
  m.heads = m.kv_heads = 4;
  m.head_dim = 64;
  m.ffn = 512;
  m.vocab = 1024;
  m.experts = 4;
  m.experts_per_token = 2;
  m.mtp_layers = further;
  return m;
}

StepOptions step() {
  return test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 1, 512));
}

Block head(std::int64_t further, const StepOptions& step) {
  const ModelGraph graph = build_model_graph(predicting(further), step);
  return *std::ranges::find_if(graph.blocks, [](const Block& b) { return b.name == "head"; });
}

TEST(FurtherPredictions, EachIsALayerAProjectionAndAHead) {
  const Block none = head(0, step()), one = head(1, step()), three = head(3, step());
  EXPECT_EQ(three.parameters - none.parameters, llama_mtp_parameters(predicting(3)));
  EXPECT_EQ(three.parameters - none.parameters, 3 * (one.parameters - none.parameters));
  const auto flops = [](const Block& b) {
    return total(b.forward).gemm_flops.value() + total(b.backward).gemm_flops.value();
  };
  EXPECT_EQ(flops(three) - flops(none), 3 * (flops(one) - flops(none)));
}

TEST(FurtherPredictions, EachSavesAsMuch) {
  // The first reads the last layer's results, which the head's norm saves as well.
  const Bytes one = head(1, step()).saved, two = head(2, step()).saved;
  EXPECT_EQ(head(3, step()).saved - two, two - one);
}

/// On two stages of which the second has the head alone.
StepOptions ahead() {
  StepOptions options = step();
  options.layout.pipeline = 2;
  options.split.layers_per_stage = {2, 0};
  options.split.mtp_ahead = true;
  return options;
}

TEST(FurtherPredictions, AheadOfTheHeadAreTheSameInTwoStages) {
  StepOptions together = ahead();
  together.split.mtp_ahead = false;
  const ModelGraph whole = build_model_graph(predicting(2), together);
  const ModelGraph cut = build_model_graph(predicting(2), ahead());
  EXPECT_EQ(cut.blocks_of_parts, (std::vector<int>{1 + 2 + 1, 1}));  // embedding, layers, mtp; head
  const Block &further = cut.at(3), &last = cut.at(4), &both = whole.at(3);
  EXPECT_EQ(further.name, "mtp");
  EXPECT_EQ(further.parameters + last.parameters, both.parameters);
  const auto flops = [](const Block& b) {
    return total(b.forward).gemm_flops.value() + total(b.backward).gemm_flops.value();
  };
  EXPECT_EQ(flops(further) + flops(last), flops(both));
  // What the last layer gave and two predictions travel, and their gradients back.
  EXPECT_EQ(output_bytes(further), 3 * output_bytes(cut.at(2)));
  EXPECT_EQ(input_bytes(last), output_bytes(further));
}

/// Gradients of parameters that nothing writes.
int unwritten_gradients(const Block& block) {
  int count = 0;
  for (std::size_t s = 0; s < block.storages.size(); ++s) {
    if (block.storages[s].role != TensorRole::gradient) continue;
    const bool written = std::ranges::any_of(block.backward, [&](const GraphOp& op) {
      return std::ranges::any_of(op.writes, [&](const Access& access) {
        return access.storage == StorageId(static_cast<std::int32_t>(s));
      });
    });
    count += written ? 0 : 1;
  }
  return count;
}

TEST(FurtherPredictions, TrainTheirOwnParametersWhereLayersRunAgain) {
  StepOptions again = step();
  again.recompute = Recompute::selective;
  again.recompute_modules = {"moe", "layernorm"};
  EXPECT_EQ(unwritten_gradients(head(2, step())), 0);
  EXPECT_EQ(unwritten_gradients(head(2, again)), 0);
  const ModelGraph cut = build_model_graph(predicting(2), ahead());
  EXPECT_EQ(unwritten_gradients(cut.at(3)) + unwritten_gradients(cut.at(4)), 0);
}

}  // namespace
}  // namespace tessera
