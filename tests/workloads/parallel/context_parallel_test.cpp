#include <algorithm>

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

ModelSpec small_llama() {
  ModelSpec model = test::llama2_7b();
  model.layers = 4;
  model.hidden = 1024;
  model.heads = model.kv_heads = 16;
  model.head_dim = 64;
  model.ffn = 2816;
  return model;
}

StepOptions training(int context, ContextAttention way = ContextAttention::ring) {
  StepOptions step =
      test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 1, 4096));
  step.layout.context = context;
  step.context_attention = way;
  return step;
}

constexpr ContextAttention kWays[] = {ContextAttention::ring, ContextAttention::all_gather,
                                      ContextAttention::ulysses};

TEST(ContextParallel, RunsTheWorkOfTheModelOnce) {
  const double whole = build_program(small_llama(), training(1)).model_flops.value();
  for (const ContextAttention way : kWays) {
    for (const int context : {2, 4, 8}) {
      const Program program = build_program(small_llama(), training(context, way));
      EXPECT_DOUBLE_EQ(program.model_flops.value(), whole) << context;
      EXPECT_EQ(program.layout.world_size(), context);
    }
  }
}

TEST(ContextParallel, DividesTheSavedActivations) {
  const Block whole = build_model_graph(small_llama(), training(1)).at(1);
  for (const ContextAttention way : kWays) {
    for (const int context : {2, 4, 8}) {
      const Block part = build_model_graph(small_llama(), training(context, way)).at(1);
      // all but the weights' statistics, of which none are saved, scale with the sequence; the
      // exchanges keep copies of q, k, v and the output
      const double ratio = whole.saved / part.saved;
      EXPECT_NEAR(ratio, context,
                  way == ContextAttention::ulysses ? 0.25 * context : 0.1 * context);
      EXPECT_EQ(part.parameters, whole.parameters);
    }
  }
}

TEST(ContextParallel, FreesWhatItSaved) {
  for (const ContextAttention way : kWays) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      StepOptions step = training(4, way);
      step.recompute = recompute;
      const Program program = build_program(small_llama(), step);
      Bytes net;
      for (const ProgramOp& op : program.stages[0].ops) {
        if (op.kind == OpKind::kernels) net += program.segment(op.segment).net_memory;
      }
      EXPECT_EQ(net.value(), 0);
    }
  }
}

TEST(ContextParallel, RingSendsBesideTheAttention) {
  const Program program = build_program(small_llama(), training(4));
  const auto& ops = program.stages[0].ops;
  std::ptrdiff_t overlapped = 0;
  for (std::size_t i = 0; i + 2 < ops.size(); ++i) {
    if (ops[i].kind != OpKind::ring_shift) continue;
    const auto shift = static_cast<std::int32_t>(i);
    const auto& kernels = program.segment(ops[i + 1].segment).kernels;
    EXPECT_EQ(kernels.front().kernel.kind, KernelKind::attention);
    EXPECT_NE(ops[i + 1].waits[0], shift);
    overlapped += std::ranges::count(ops[i + 2].waits, shift);
  }
  EXPECT_EQ(overlapped, 4 * (3 + 4));  // three steps forward, four in backward
}

TEST(ContextParallel, BadSizesAreExplained) {
  EXPECT_THAT(test::refusal(small_llama(), training(3)), HasSubstr("3 ranks with two pieces each"));
  EXPECT_THAT(test::refusal(small_llama(), training(32, ContextAttention::ulysses)),
              HasSubstr("use ring or all_gather"));
  StepOptions unfused = training(2);
  unfused.framework = test::megatron_local();
  EXPECT_THAT(test::refusal(small_llama(), unfused), HasSubstr("unfused attention sees whole"));
  StepOptions experts = training(1);
  experts.layout.data = experts.layout.expert = 2;
  experts.global_batch = 2;
  EXPECT_THAT(test::refusal(small_llama(), experts), HasSubstr("the model has no experts"));
}

}  // namespace
}  // namespace tessera
