// A mixture of experts under Megatron: grouped products against closed forms.
#include "workloads/ops/experts/experts.h"

#include <algorithm>
#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ExpertLoads, SumToTheRowsWithTheFirstAsBusyAsAsked) {
  EXPECT_THAT(expert_loads(16, 4, 1), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(expert_loads(18, 4, 1), ElementsAre(5, 5, 4, 4));
  EXPECT_THAT(expert_loads(16, 4, 2), ElementsAre(8, 3, 3, 2));
  EXPECT_THAT(expert_loads(16, 4, 4), ElementsAre(16, 0, 0, 0));
  EXPECT_THAT(expert_loads(3, 8, 1), ElementsAre(0, 1, 1, 1, 0, 0, 0, 0));
  for (const double imbalance : {1.0, 1.3, 2.7, 8.0}) {
    const auto loads = expert_loads(1000, 8, imbalance);
    EXPECT_EQ(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}), 1000);
    EXPECT_NEAR(static_cast<double>(loads[0]), 125 * imbalance, 1);
  }
}

ModelSpec mixtral() {
  ModelSpec model = test::llama2_7b();
  model.name = "mixtral-8x7b";
  model.kv_heads = 8;
  model.ffn = 14336;
  model.experts = 8;
  model.experts_per_token = 2;
  return model;
}

StepOptions step_of(int tensor) {
  StepOptions step =
      test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 1, 2048));
  step.layout.tensor = tensor;
  return step;
}

constexpr int kLayer = 1;

double flops_called(const std::vector<GraphOp>& ops, const std::string& part) {
  double sum = 0;
  for (const GraphOp& op : ops) {
    if (op.name.find(part) != std::string::npos) sum += op.kernel.flops.value();
  }
  return sum;
}

TEST(MixtureOfExperts, MultipliesEveryTokenByAsManyExpertsAsItIsSentTo) {
  const Block layer = build_model_graph(mixtral(), step_of(1)).blocks[kLayer];
  const double one = 2.0 * 2048 * 2 * 4096 * 14336;  // tokens * k rows, one of three matrices
  EXPECT_DOUBLE_EQ(flops_called(layer.forward, "experts.up"), 2 * one);
  EXPECT_DOUBLE_EQ(flops_called(layer.forward, "experts.down"), one);
  EXPECT_DOUBLE_EQ(flops_called(layer.backward, "experts.up."), 4 * one);
  EXPECT_DOUBLE_EQ(flops_called(layer.backward, "experts.down."), 2 * one);
}

TEST(MixtureOfExperts, HasThePublishedNumberOfParameters) {
  const Program program = build_program(mixtral(), step_of(1));
  EXPECT_EQ(program.parameters, 46'702'792'704);  // model card: 46.7 G
  EXPECT_EQ(program.stages[0].parameters, program.parameters);
}

TEST(MixtureOfExperts, TensorParallelRanksShareEveryExpert) {
  const Block whole = build_model_graph(mixtral(), step_of(1)).blocks[kLayer];
  const Block part = build_model_graph(mixtral(), step_of(4)).blocks[kLayer];
  EXPECT_DOUBLE_EQ(4 * flops_called(part.forward, "experts.up"),
                   flops_called(whole.forward, "experts.up"));
}

std::ptrdiff_t host_waits(const std::vector<GraphOp>& ops) {
  return std::ranges::count(ops, GraphOpKind::host_sync, &GraphOp::kind);
}

StepOptions step_permuting(bool fused, int ranks = 1) {
  StepOptions step = step_of(1);
  step.framework.expert_dispatcher =
      fused ? ExpertDispatcher::all_to_all_fused : ExpertDispatcher::all_to_all;
  step.framework.weights_in_activation = true;
  step.layout.data = step.layout.expert = ranks;
  step.global_batch = ranks;
  return step;
}

TEST(MixtureOfExperts, TheHostWaitsForTheCountsOnce) {
  const Block layer = build_model_graph(mixtral(), step_permuting(true)).blocks[kLayer];
  EXPECT_EQ(host_waits(layer.forward), 1);
  EXPECT_EQ(host_waits(layer.backward), 0);
}

TEST(MixtureOfExperts, MaskedSelectOfTokensAndOfWeightsHaveTheHostWaitToo) {
  const Block layer = build_model_graph(mixtral(), step_permuting(false)).blocks[kLayer];
  EXPECT_EQ(host_waits(layer.forward), 3);
  EXPECT_EQ(host_waits(layer.backward), 0);
}

/// Bytes of all kernels whose name begins with `part`.
std::int64_t bytes_called(const std::vector<GraphOp>& ops, const std::string& part) {
  std::int64_t sum = 0;
  for (const GraphOp& op : ops)
    if (op.name.starts_with(part)) sum += op.kernel.bytes().value();
  return sum;
}

TEST(MixtureOfExperts, SumsRowsInOneKernelOrByAtomicAdditionsToZeros) {
  const std::int64_t tokens = 2048 * 4096 * 2, rows = 2 * tokens;  // bytes, two experts a token
  const Block fused = build_model_graph(mixtral(), step_permuting(true)).blocks[kLayer];
  EXPECT_EQ(bytes_called(fused.forward, "mlp.combine"), rows + tokens);
  const Block eager = build_model_graph(mixtral(), step_permuting(false)).blocks[kLayer];
  EXPECT_EQ(bytes_called(eager.forward, "mlp.combine"), tokens + rows + rows);
  const std::int64_t places = 8 * 2 * 2048;  // int64, one a row
  EXPECT_EQ(bytes_called(eager.backward, "mlp.router.permute.backward"),
            tokens + rows + rows + places);
}

TEST(MixtureOfExperts, RanksTellEachOtherTheirCounts) {
  const auto gathers = [](const StepOptions& step) {
    const Block layer = build_model_graph(mixtral(), step).blocks[kLayer];
    std::int64_t bytes = 0;
    for (const GraphOp& op : layer.forward)
      if (op.collective == OpKind::all_gather && op.kind == GraphOpKind::collective)
        bytes += op.bytes.value();
    return bytes;
  };
  EXPECT_EQ(gathers(step_permuting(true)), 0);
  EXPECT_EQ(gathers(step_permuting(true, 4)), 4 * 8 * 8);  // ranks, experts, int64
  StepOptions padded = step_permuting(true, 4);
  padded.expert_capacity_factor = 1;  // sizes are known
  EXPECT_EQ(gathers(padded), 0);
}

TEST(MixtureOfExperts, GroupsCarryTheImbalance) {
  StepOptions step = step_of(1);
  step.expert_imbalance = 3;
  const Block layer = build_model_graph(mixtral(), step).blocks[kLayer];
  const auto up = std::ranges::find(layer.forward, "mlp.experts.up", &GraphOp::name);
  EXPECT_EQ(up->kernel.group_sizes.front(), 3 * 2048 * 2 / 8);
  step.expert_imbalance = 9;
  EXPECT_THAT(test::refusal(mixtral(), step), HasSubstr("exceeds the number of experts"));
}

}  // namespace
}  // namespace tessera
