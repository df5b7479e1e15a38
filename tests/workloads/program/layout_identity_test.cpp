// Dimensions of one change nothing, in whatever way they would be used or numbered.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

bool same(const ProgramOp& a, const ProgramOp& b) {
  return a.kind == b.kind && a.stream == b.stream && a.phase == b.phase && a.waits == b.waits &&
         a.segment == b.segment && a.group == b.group && a.bytes == b.bytes &&
         a.peer_stage == b.peer_stage && a.tag == b.tag && a.micro_batch == b.micro_batch &&
         a.layer == b.layer && a.host_sync == b.host_sync;
}

void expect_same(const Program& a, const Program& b) {
  ASSERT_EQ(a.segments.size(), b.segments.size());
  for (std::size_t i = 0; i < a.segments.size(); ++i) {
    ASSERT_EQ(a.segments[i].kernels.size(), b.segments[i].kernels.size());
    for (std::size_t k = 0; k < a.segments[i].kernels.size(); ++k)
      EXPECT_EQ(a.segments[i].kernels[k].kernel, b.segments[i].kernels[k].kernel);
    EXPECT_EQ(a.segments[i].peak_above_start, b.segments[i].peak_above_start);
    EXPECT_EQ(a.segments[i].host_ops, b.segments[i].host_ops);
  }
  ASSERT_EQ(a.stages.size(), b.stages.size());
  for (std::size_t stage = 0; stage < a.stages.size(); ++stage) {
    EXPECT_EQ(a.stages[stage].static_memory, b.stages[stage].static_memory);
    ASSERT_EQ(a.stages[stage].ops.size(), b.stages[stage].ops.size());
    for (std::size_t op = 0; op < a.stages[stage].ops.size(); ++op)
      EXPECT_TRUE(same(a.stages[stage].ops[op], b.stages[stage].ops[op])) << op;
  }
}

ModelSpec sparse_llama() {
  ModelSpec model = test::llama2_7b();
  model.layers = 8;
  model.experts = 8;
  model.experts_per_token = 2;
  return model;
}

StepOptions training(int tensor, int pipeline, int data) {
  StepOptions step =
      test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 1, 512));
  step.layout.tensor = tensor;
  step.layout.pipeline = pipeline;
  step.layout.data = data;
  step.global_batch = 4 * data;
  return step;
}

TEST(LayoutIdentity, DimensionsOfOneChangeNothing) {
  std::mt19937 random(11);
  const auto size = [&] { return 1 << random() % 3; };
  for (int trial = 0; trial < 16; ++trial) {
    const StepOptions plain = training(size(), size(), size());
    StepOptions step = plain;
    step.layout.context = step.layout.expert = step.layout.virtual_stages = 1;
    step.context_attention = static_cast<ContextAttention>(random() % 3);
    step.framework.overlap_p2p = trial % 2 == 0;
    step.split.layers_per_stage.assign(static_cast<std::size_t>(step.layout.pipeline),
                                       8 / step.layout.pipeline);
    std::shuffle(step.layout.order.begin(), step.layout.order.end(), random);
    expect_same(build_program(sparse_llama(), plain), build_program(sparse_llama(), step));
  }
}

TEST(LayoutIdentity, AGroupOfOneHasNoCommunication) {
  const Program program = build_program(sparse_llama(), training(1, 1, 1));
  for (const ProgramOp& op : program.stages[0].ops) EXPECT_EQ(op.kind, OpKind::kernels);
}

TEST(LayoutIdentity, OneStageRunsTheSameKernelsInEverySchedule) {
  const Program plain = build_program(sparse_llama(), training(2, 1, 2));
  StepOptions step = training(2, 1, 2);
  step.schedule = PipelineSchedule::gpipe;
  const Program gpipe = build_program(sparse_llama(), step);
  EXPECT_EQ(plain.stages[0].ops.size(), gpipe.stages[0].ops.size());
  for (const PipelineSchedule schedule : {PipelineSchedule::zb_h1, PipelineSchedule::zb_h2}) {
    step.schedule = schedule;
    EXPECT_DOUBLE_EQ(build_program(sparse_llama(), step).hardware_flops.value(),
                     plain.hardware_flops.value());
  }
}

}  // namespace
}  // namespace tessera
