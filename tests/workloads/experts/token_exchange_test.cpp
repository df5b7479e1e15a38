// Tokens that travel once per rank, and exchanges of experts beside the kernels of another
// micro-batch: against closed forms.
#include "workloads/ops/experts/token_exchange.h"

#include <algorithm>
#include <map>
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

using ::testing::HasSubstr;

constexpr std::int64_t kHidden = 1024, kFfn = 2816, kSequence = 1024, kMicroBatch = 2;
constexpr std::int64_t kTokens = kSequence * kMicroBatch;
constexpr std::int64_t kExperts = 8, kPerToken = 2;

ModelSpec mixture(std::int64_t layers = 2) {
  ModelSpec model = test::llama2_7b();
  model.layers = layers;
  model.hidden = kHidden;
  model.heads = model.kv_heads = 16;
  model.head_dim = 64;
  model.ffn = kFfn;
  model.experts = kExperts;
  model.experts_per_token = kPerToken;
  return model;
}

StepOptions step_with(ExpertDispatcher dispatcher, int ranks, int micro_batches = 1) {
  StepOptions step =
      test::in(Precision::bf16,
               test::single_gpu(test::megatron(), StepMode::training, kMicroBatch, kSequence));
  step.framework.expert_dispatcher = dispatcher;
  step.layout.data = ranks;
  step.layout.expert = ranks;
  step.global_batch = kMicroBatch * ranks * micro_batches;
  return step;
}

std::vector<Bytes> exchanges(const std::vector<GraphOp>& ops) {
  std::vector<Bytes> bytes;
  for (const GraphOp& op : ops)
    if (op.kind == GraphOpKind::collective && op.group == GroupKind::expert)
      bytes.push_back(op.bytes);
  return bytes;
}

TEST(ArrivingTokens, AreThoseThatMeetOneOfTheRanksExperts) {
  // Two of eight experts. A rank with one of them: 1 - 7/8 6/7 = 1/4 of the tokens of 8 ranks. With
  // two: 1 - 6/8 5/7 = 13/28 of those of 4 ranks.
  const auto arriving = [](std::int64_t ranks, double imbalance) {
    const ExpertGroup group = busiest_expert_rank(kTokens * kPerToken, kExperts, ranks, imbalance);
    return arriving_tokens(group, kTokens, kExperts, kPerToken);
  };
  EXPECT_EQ(arriving(8, 1), kTokens * 8 / 4);
  EXPECT_NEAR(static_cast<double>(arriving(4, 1)), 4.0 * kTokens * 13 / 28, 1);
  // Twice the mean for one of its two experts, 6/7 for the other.
  EXPECT_NEAR(static_cast<double>(arriving(4, 2)), 4.0 * kTokens * 13 / 28 * (2 + 6.0 / 7) / 2, 2);
}

TEST(TokenExchange, SendsATokenOncePerRankAndNotOncePerExpert) {
  const auto layer = [](ExpertDispatcher dispatcher) {
    return build_model_graph(mixture(), step_with(dispatcher, 4)).blocks[1];
  };
  const Block by_expert = layer(ExpertDispatcher::all_to_all);
  const Block by_rank = layer(ExpertDispatcher::deepep);
  const Bytes once_per_expert(2 * kTokens * kPerToken * kHidden);
  const Bytes once_per_rank(2 * kHidden * std::llround(4.0 * kTokens * 13 / 28));
  const Bytes counts(4 * kExperts * 8);  // of all ranks, int64
  EXPECT_EQ(exchanges(by_expert.forward), (std::vector{counts, once_per_expert, once_per_expert}));
  const Bytes marks(4 * kTokens * kExperts);
  EXPECT_EQ(exchanges(layer(ExpertDispatcher::hybridep).forward).front(), marks);
  EXPECT_EQ(exchanges(by_rank.forward), std::vector(2, once_per_rank));
  EXPECT_EQ(exchanges(by_rank.backward), std::vector(2, once_per_rank));
}

TEST(TokenExchange, LeavesTheExpertsWhatTheyMultiply) {
  const auto flops = [](ExpertDispatcher dispatcher) {
    return build_program(mixture(), step_with(dispatcher, 4)).model_flops.value();
  };
  EXPECT_DOUBLE_EQ(flops(ExpertDispatcher::all_to_all), flops(ExpertDispatcher::hybridep));
}

TEST(TokenExchange, KeepsRowsOfExpertsAloneForBackward) {
  const auto saved = [](ExpertDispatcher dispatcher, bool in_activation) {
    StepOptions step = step_with(dispatcher, 4);
    step.framework.weights_in_activation = in_activation;
    return build_model_graph(mixture(), step).blocks[1].saved.value();
  };
  // Weights that multiply results keep these, one row per token and expert.
  const std::int64_t results = 2 * kTokens * kPerToken * kHidden;
  EXPECT_NEAR(static_cast<double>(saved(ExpertDispatcher::all_to_all, false) -
                                  saved(ExpertDispatcher::all_to_all, true)),
              static_cast<double>(results), 0.02 * static_cast<double>(results));
}

TEST(TokenExchange, WithACapacityIsRefused) {
  StepOptions step = step_with(ExpertDispatcher::deepep, 4);
  step.expert_capacity_factor = 1;
  EXPECT_THAT(test::refusal(mixture(), step), HasSubstr("not simulated with DeepEP"));
}

Program overlapped(bool overlaps, ExpertDispatcher dispatcher = ExpertDispatcher::deepep) {
  StepOptions step = step_with(dispatcher, 4, 3);
  step.framework.overlap_experts = overlaps;
  return build_program(mixture(), step);
}

TEST(OverlappedExperts, RunTheSameOpsInAnotherOrder) {
  const auto counts = [](const Program& program) {
    std::map<std::tuple<OpKind, int, int, Phase>, int> by_kind;
    for (const ProgramOp& op : program.stages[0].ops)
      ++by_kind[{op.kind, op.micro_batch, op.layer, op.phase}];
    return by_kind;
  };
  EXPECT_EQ(counts(overlapped(false)), counts(overlapped(true)));
}

TEST(OverlappedExperts, AnExchangeIsFollowedByKernelsOfTheOtherMicroBatch) {
  const Program program = overlapped(true);
  const std::vector<ProgramOp>& ops = program.stages[0].ops;
  int beside = 0;
  for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
    const bool exchange = ops[i].kind == OpKind::all_to_all && ops[i].group == GroupKind::expert;
    if (!exchange || ops[i + 1].kind != OpKind::kernels) continue;
    if (ops[i + 1].micro_batch == ops[i].micro_batch) continue;
    ++beside;
    for (const std::int32_t wait : ops[i + 1].waits) EXPECT_NE(wait, static_cast<std::int32_t>(i));
  }
  // Of 3 micro-batches two pairs overlap, over 2 layers with 4 exchanges each; the last of a pass
  // has nothing left of the other to wait beside.
  EXPECT_GE(beside, 2 * 2 * 3);
}

/// The exchange starts behind the gather that says who sends what, and the other micro-batch's
/// kernels wait for neither: a gather that parted the two would leave exchanges with nothing beside
/// them.
TEST(OverlappedExperts, AGatherOfMarksTakesNoTurnsAndNoPlaceAmongTokens) {
  for (const auto dispatcher : {ExpertDispatcher::hybridep, ExpertDispatcher::all_to_all_fused}) {
    const Program program = overlapped(true, dispatcher);
    const std::vector<ProgramOp>& ops = program.stages[0].ops;
    int gathers = 0;
    for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
      if (ops[i].kind != OpKind::all_gather || ops[i].group != GroupKind::expert) continue;
      ++gathers;
      EXPECT_NE(ops[i].stream, StreamKind::expert_comm);
      EXPECT_EQ(ops[i + 1].micro_batch, ops[i].micro_batch);
    }
    // one for each of 3 micro-batches and 2 layers
    EXPECT_EQ(gathers, 3 * 2) << int(dispatcher);
  }
}

TEST(OverlappedExperts, KeepOneMicroBatchMoreThanOneAtATime) {
  // The forward pass of the next micro-batch runs ahead of backward.
  const Program program = overlapped(true);
  int most = 0, now = 0;
  for (const PassSpan& pass : program.stages[0].passes) {
    now += pass.part == PassPart::forward ? 1 : -1;
    most = std::max(most, now);
  }
  EXPECT_EQ(most, 2);
}

}  // namespace
}  // namespace tessera
