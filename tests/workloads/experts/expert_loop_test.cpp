// A mixture of experts as Hugging Face runs it, against closed forms and against Megatron's grouped
// products.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/memory/memory_replay.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kHidden = 1024, kKeys = 256, kFfn = 2816, kTokens = 2 * 512;
constexpr std::int64_t kExperts = 8, kPerToken = 2;
constexpr int kLayer = 1;

ModelSpec mixture() {
  ModelSpec model = test::llama2_7b();
  model.layers = 2;
  model.hidden = kHidden;
  model.heads = 8;
  model.kv_heads = 2;
  model.ffn = kFfn;
  model.vocab = 4096;
  model.experts = kExperts;
  model.experts_per_token = kPerToken;
  return model;
}

ModelSpec dense() {
  ModelSpec model = mixture();
  model.experts = model.experts_per_token = 0;
  return model;
}

StepOptions step_of(const FrameworkProfile& framework) {
  return test::in(Precision::bf16, test::single_gpu(framework, StepMode::training, 2, 512));
}

Block layer_of(const StepOptions& step, const ModelSpec& model = mixture()) {
  return build_model_graph(model, step).blocks[kLayer];
}

/// FLOPs of matrix products; attention is another kind of kernel.
double product_flops(const std::vector<GraphOp>& ops) {
  double sum = 0;
  for (const GraphOp& op : ops) {
    const KernelKind kind = op.kernel.kind;
    const bool product = kind == KernelKind::gemm || kind == KernelKind::grouped_gemm;
    if (op.kind == GraphOpKind::kernel && product) sum += op.kernel.flops.value();
  }
  return sum;
}

std::int64_t syncs(const std::vector<GraphOp>& ops) {
  return std::ranges::count(ops, GraphOpKind::host_sync, &GraphOp::kind);
}

std::int64_t kernels_named(const std::vector<GraphOp>& ops, const std::string& part) {
  return std::ranges::count_if(
      ops, [&](const GraphOp& op) { return op.name.find(part) != std::string::npos; });
}

/// Weights that a token meets: of its experts, the router, and attention.
constexpr double kMet = 3.0 * kPerToken * kHidden * kFfn + kHidden * kExperts +
                        2.0 * kHidden * kHidden + 2.0 * kHidden * kKeys;

TEST(ExpertLoop, MultipliesAsManyNumbersAsTheFormulaAndAsMegatron) {
  const Block layer = layer_of(step_of(test::fsdp()));
  EXPECT_DOUBLE_EQ(product_flops(layer.forward), 2 * kTokens * kMet);
  EXPECT_DOUBLE_EQ(product_flops(layer.backward), 4 * kTokens * kMet);
  const Block grouped = layer_of(step_of(test::megatron()));
  EXPECT_DOUBLE_EQ(product_flops(layer.forward), product_flops(grouped.forward));
  EXPECT_DOUBLE_EQ(product_flops(layer.backward), product_flops(grouped.backward));
}

TEST(ExpertLoop, EveryGpuHoldsAllExperts) {
  StepOptions step = step_of(test::hf_eager());
  ModelSpec mixtral = test::llama2_7b();
  mixtral.kv_heads = 8;
  mixtral.ffn = 14336;
  mixtral.experts = 8;
  mixtral.experts_per_token = 2;
  EXPECT_EQ(build_program(mixtral, step).parameters, 46'702'792'704);  // model card: 46.7 G
  step.layout.data = 4;
  step.global_batch = 8;
  EXPECT_EQ(build_program(mixtral, step).stages[0].parameters, 46'702'792'704);
}

TEST(ExpertLoop, TheHostWaitsForEveryExpertsNumberOfTokens) {
  StepOptions step = step_of(test::fsdp());
  Block layer = layer_of(step);
  EXPECT_EQ(syncs(layer.forward), kExperts);
  EXPECT_EQ(syncs(layer.backward), 0);
  EXPECT_EQ(kernels_named(layer.forward, ".index_add"), kExperts);
  EXPECT_EQ(kernels_named(layer.backward, ".rows.zero"), kExperts);  // a gradient of all tokens
  step.recompute = Recompute::full;
  layer = layer_of(step);
  EXPECT_EQ(syncs(layer.backward), kExperts);  // and again where forward runs again
}

/// Beyond a dense layer, which keeps four of [tokens, ffn]: what the router keeps, and of each
/// expert's rows input, result, weight, positions, and four of ffn.
TEST(ExpertLoop, SavesWhatTheRoutedRowsNeed) {
  const StepOptions step = step_of(test::hf_eager());
  const std::int64_t more = (layer_of(step).saved - layer_of(step, dense()).saved).value();
  const std::int64_t rows = kTokens * kPerToken;
  const std::int64_t router = kTokens * 4 * kExperts  // softmax in fp32
                              + rows * (8 + 4)        // the best: places, shares in fp32
                              + kTokens * 4;          // their sum
  const std::int64_t experts = rows * 2 * (kHidden + 4 * kFfn + kHidden + 1) + rows * 2 * 8;
  EXPECT_EQ(more, router + experts - kTokens * 2 * 4 * kFfn);
}

TEST(ExpertLoop, FullRecomputationKeepsTheInputAndRunsForwardAgain) {
  StepOptions step = step_of(test::hf_eager());
  step.recompute = Recompute::full;
  const Block layer = layer_of(step);
  EXPECT_EQ(layer.saved.value(), kTokens * kHidden * 2);
  EXPECT_DOUBLE_EQ(product_flops(layer.backward), 6 * kTokens * kMet);
}

TEST(ExpertLoop, ImbalanceMovesTokensBetweenExperts) {
  StepOptions step = step_of(test::fsdp());
  const Block even = layer_of(step);
  step.expert_imbalance = 4;  // every token goes to the first expert
  const Block layer = layer_of(step);
  const auto rows = [&](const std::string& expert) {
    return std::ranges::find(layer.forward, expert + ".down", &GraphOp::name)->kernel.m;
  };
  EXPECT_EQ(rows("mlp.expert0"), kTokens);
  EXPECT_EQ(rows("mlp.expert7"), kTokens / 7);  // the rest of the rows, kTokens, over seven
  EXPECT_DOUBLE_EQ(product_flops(layer.forward), product_flops(even.forward));
  EXPECT_NEAR(static_cast<double>(layer.saved.value() - even.saved.value()), 0, 1);
}

TEST(ExpertLoop, AnExpertWithoutTokensHoldsItsWeights) {
  StepOptions step = step_of(test::hf_eager());
  step.sequence_length = 1;  // two tokens, four rows for eight experts
  const Block layer = layer_of(step);
  EXPECT_EQ(layer.parameters, layer_of(step_of(test::hf_eager())).parameters);
  EXPECT_EQ(kernels_named(layer.forward, ".index_add"), 4);
  EXPECT_EQ(syncs(layer.forward), kExperts);
}

/// torch.compile breaks its graph where the host waits; what lies between merges.
TEST(ExpertLoop, FusionMergesBetweenTheWaits) {
  for (const StepMode mode : {StepMode::training, StepMode::inference}) {
    StepOptions step = step_of(test::fsdp());
    step.mode = mode;
    const Block eager = layer_of(step);
    step.kernels = KernelMode::fused;
    const Block layer = layer_of(step);
    EXPECT_EQ(syncs(layer.forward), kExperts);
    EXPECT_DOUBLE_EQ(product_flops(layer.forward), product_flops(eager.forward));
    EXPECT_DOUBLE_EQ(product_flops(layer.backward), product_flops(eager.backward));
    EXPECT_LT(total(layer.forward).kernels, total(eager.forward).kernels);
    EXPECT_LT(total(layer.forward).bytes, total(eager.forward).bytes);
    EXPECT_LE(layer.saved, eager.saved);
  }
}

TEST(ExpertLoop, StepsFreeWhatTheyAllocate) {
  for (const FrameworkProfile& framework : {test::hf_eager(), test::fsdp()}) {
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      for (const KernelMode kernels : {KernelMode::eager, KernelMode::fused}) {
        StepOptions step = step_of(framework);
        step.layout.data = 4;
        step.global_batch = 2 * 4 * 3;
        step.data_parallel = framework.data_parallel;
        step.recompute = recompute;
        step.kernels = kernels;
        const Program program = build_program(mixture(), step);
        Bytes in_use;
        replay_memory(program, 0, -1, [&](const MemoryStep& change) {
          in_use += change.allocates ? change.allocation.bytes : -change.allocation.bytes;
        });
        EXPECT_EQ(in_use, Bytes());
      }
    }
  }
}

TEST(ExpertLoop, RefusesWhatTheModulesCannot) {
  StepOptions step = step_of(test::fsdp());
  EXPECT_EQ(test::refusal(mixture(), step), "");
  step.expert_imbalance = 4.5;
  EXPECT_THAT(test::refusal(mixture(), step), HasSubstr("2 of which take each token; use 1 to 4"));
  step.expert_imbalance = 2;
  EXPECT_THAT(test::refusal(dense(), step), HasSubstr("the model has no experts"));
  step = step_of(test::fsdp());
  step.expert_capacity_factor = 1.5;
  EXPECT_THAT(test::refusal(mixture(), step), HasSubstr("fsdp drops no tokens"));
  step = step_of(test::fsdp());
  step.layout.data = step.layout.expert = 2;
  step.global_batch = 4;
  EXPECT_THAT(test::refusal(mixture(), step), HasSubstr("hold all experts on every GPU"));
  ModelSpec gpt = test::gpt2_large();
  gpt.experts = 8;
  gpt.experts_per_token = 2;
  EXPECT_THAT(test::refusal(gpt, step_of(test::fsdp())),
              HasSubstr("fsdp runs no GPT with experts"));
}

}  // namespace
}  // namespace tessera
