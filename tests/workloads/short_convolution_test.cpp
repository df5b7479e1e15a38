// Short convolutions between gates (LFM2) and xIELU (Apertus): parameters, kernels and saved bytes
// by hand.
#include "workloads/ops/states/short_convolution.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/parameter_count.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSequence = 512, kHidden = 2048;

ModelSpec convolutions() {
  ModelSpec model = test::llama2_7b();
  model.layer_pattern = "C-*-";
  model.layers = 4;
  model.hidden = kHidden;
  model.heads = 32;
  model.kv_heads = 8;
  model.head_dim = 64;
  model.qk_norm = true;
  model.ffn = 8192;
  model.vocab = 65536;
  return model;
}

StepOptions step() {
  return test::in(Precision::bf16,
                  test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
}

std::int64_t bytes_of(const std::vector<GraphOp>& ops, const std::string& name) {
  const auto found = std::ranges::find(ops, name, &GraphOp::name);
  return found == ops.end() ? 0 : found->kernel.bytes().value();
}

TEST(ShortConvolution, ALayerByHand) {
  const Block layer = build_model_graph(convolutions(), step()).blocks[1];
  EXPECT_EQ(layer.parameters, kHidden + 4 * kHidden * kHidden + 3 * kHidden);
  const std::int64_t tensor = kSequence * kHidden * 2;  // bytes
  const std::int64_t taps = 3 * kHidden * 2;
  EXPECT_EQ(bytes_of(layer.forward, "conv.gate_in"), 3 * tensor);
  EXPECT_EQ(bytes_of(layer.forward, "conv.conv1d"), 2 * tensor + taps);
  EXPECT_EQ(bytes_of(layer.forward, "conv.gate_out"), 3 * tensor);
  EXPECT_EQ(bytes_of(layer.backward, "conv.conv1d.backward"), 3 * tensor + 2 * taps);
  double multiplied = 0;
  for (const GraphOp& op : layer.forward)
    if (op.kernel.kind == KernelKind::gemm) multiplied += op.kernel.flops.value();
  EXPECT_DOUBLE_EQ(multiplied, 2.0 * kSequence * 4 * kHidden * kHidden);
}

TEST(ShortConvolution, TensorParallelRanksHoldSomeOfTheChannels) {
  StepOptions split = step();
  split.layout.tensor = 2;
  const Block layer = build_model_graph(convolutions(), split).blocks[1];
  EXPECT_EQ(layer.parameters, kHidden + (4 * kHidden * kHidden + 3 * kHidden) / 2);
}

TEST(ShortConvolution, IsRefusedWhereItsPositionsAreDivided) {
  EXPECT_EQ(test::refusal(convolutions(), step()), "");
  StepOptions divided = step();
  divided.layout.context = 2;
  EXPECT_THAT(test::refusal(convolutions(), divided),
              HasSubstr("parallelism.context: of short convolutions is not simulated"));
}

ModelSpec with_xielu() {
  ModelSpec model = test::llama2_7b();
  model.layers = 1;
  model.activation = Activation::xielu;
  return model;
}

TEST(Xielu, IsAKernelEachWayWithTwoTrainedNumbers) {
  const Block layer = build_model_graph(with_xielu(), step()).blocks[1];
  const ModelSpec model = with_xielu();
  EXPECT_EQ(layer.parameters,
            4 * model.hidden * model.hidden + 2 * model.hidden * model.ffn + 2 * model.hidden + 2);
  const std::int64_t tensor = kSequence * model.ffn * 2;
  EXPECT_EQ(bytes_of(layer.forward, "mlp.activation"), 2 * tensor + 2 * 2);
  EXPECT_EQ(bytes_of(layer.backward, "mlp.activation.backward"), 3 * tensor + 4 * 2);
  EXPECT_EQ(parameter_count(model),
            layer.parameters + 2 * model.vocab * model.hidden + model.hidden);
}

TEST(Xielu, IsRefusedOfExperts) {
  ModelSpec model = with_xielu();
  model.experts = 8;
  model.experts_per_token = 2;
  EXPECT_THAT(test::refusal(model, step()), HasSubstr("xielu is of dense feed-forwards"));
}

}  // namespace
}  // namespace tessera
