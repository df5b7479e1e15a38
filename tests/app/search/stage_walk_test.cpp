#include "app/search/stage_walk.h"

#include <gtest/gtest.h>

#include "sim/plan/device_load.h"
#include "tests/app/search/search_fixture.h"

namespace tessera {
namespace {

constexpr Bytes kMessage(256 << 20);

ProgramOp kernels(std::int32_t wait) {
  return {.kind = OpKind::kernels, .waits = {wait, -1}, .segment = SegmentId(0)};
}
ProgramOp message(OpKind kind, int peer, std::int32_t tag, std::int32_t wait) {
  const bool sends = kind == OpKind::send;
  return {.kind = kind,
          .stream = sends ? StreamKind::pipeline_send : StreamKind::pipeline_recv,
          .waits = {wait, -1},
          .bytes = kMessage,
          .peer_stage = peer,
          .tag = tag};
}

/// Two stages; each run of kernels takes a second.
struct TwoStages {
  Scenario scenario = small_scenario("");
  Topology topology{scenario.cluster};
  CollectiveTimes times{topology, scenario.collectives};
  std::vector<TimedSegment> segments{1};
  Program program;

  TwoStages(std::vector<ProgramOp> first, std::vector<ProgramOp> second) {
    segments.front().duration = Seconds(1);
    program.layout.pipeline = 2;
    program.stages.push_back({.stage = 0, .ops = std::move(first), .passes = {}});
    program.stages.push_back({.stage = 1, .ops = std::move(second), .passes = {}});
  }
  double walked(LaunchOrder order = {}) {
    return walked_pipeline(program, segments, order, times).value();
  }
  /// 256 MiB over NVLink at no more than 450 GB/s.
  double message_time() { return times.message(program.stages[0].ops[1], 0, program).value(); }
};

TEST(PipelineWalk, AStageWaitsForWhatItReceives) {
  TwoStages stages({kernels(-1), message(OpKind::send, 1, 7, 0)},
                   {message(OpKind::recv, 0, 7, -1), kernels(0)});
  EXPECT_GT(stages.message_time(), 256.0 * (1 << 20) / 450e9);
  EXPECT_NEAR(stages.walked(), 1 + stages.message_time() + 1, 1e-12);
}

TEST(PipelineWalk, WhatWaitsForNothingRunsBeside) {
  TwoStages stages({kernels(-1), message(OpKind::send, 1, 7, 0)},
                   {kernels(-1), kernels(-1), message(OpKind::recv, 0, 7, -1)});
  EXPECT_NEAR(stages.walked(), 2, 1e-12);
}

TEST(PipelineWalk, MessagesGoBackAndForth) {
  TwoStages stages(
      {kernels(-1), message(OpKind::send, 1, 0, 0), message(OpKind::recv, 1, 1, -1), kernels(2)},
      {message(OpKind::recv, 0, 0, -1), kernels(0), message(OpKind::send, 0, 1, 1)});
  EXPECT_NEAR(stages.walked(), 3 + 2 * stages.message_time(), 1e-12);
}

ProgramOp gather(std::int32_t layer) {
  return {.kind = OpKind::all_gather,
          .stream = StreamKind::data_comm,
          .phase = Phase::backward,
          .group = GroupKind::shard,
          .bytes = kMessage,
          .layer = layer};
}

/// One stage of two ranks that gather over each other.
struct OneStage : TwoStages {
  explicit OneStage(std::vector<ProgramOp> ops) : TwoStages(std::move(ops), {}) {
    program.layout = {.data = 2, .shard = 2};
    segments.front().kernel_durations = {Seconds(0.75), Seconds(0.25)};
  }
  double gather_time() { return times.alone(gather(0), 0, program).value(); }
};

/// A gather that waits for nothing runs beside the kernels ahead of it, but for the hardware queue,
/// which the last of these kernels leaves after 0.75 s.
TEST(StageWalk, InOneHardwareQueueNothingOvertakes) {
  OneStage stage({kernels(-1), gather(0), kernels(1)});
  ASSERT_GT(stage.gather_time(), 0);
  ASSERT_LT(stage.gather_time(), 0.2);
  EXPECT_NEAR(stage.walked(), 1 + 1, 1e-12);
  EXPECT_NEAR(stage.walked({.single_queue = true}), 1 + 1, 1e-12);  // over within the last kernel
  stage.segments.front().kernel_durations = {Seconds(1)};
  EXPECT_NEAR(stage.walked({.single_queue = true}), 2, 1e-12);  // the only kernel has begun
  stage.segments.front().kernel_durations = {Seconds(1), Seconds(0)};
  EXPECT_NEAR(stage.walked({.single_queue = true}), 1 + stage.gather_time() + 1, 1e-12);
}

/// Of a layer whose forward part runs again, at the earliest where the pass begins.
TEST(StageWalk, WithAPlanGathersMayComeEarlierWithinTheirPass) {
  OneStage stage({kernels(-1), kernels(-1), gather(3), kernels(2)});
  stage.segments.front().kernel_durations = {Seconds(1), Seconds(0)};
  stage.program.stages[0].passes = {{.part = PassPart::backward, .begin = 1, .end = 4}};
  const double gathered = stage.gather_time();
  EXPECT_NEAR(stage.walked({.single_queue = true}), 2 + gathered + 1, 1e-12);
  EXPECT_NEAR(stage.walked({.single_queue = true, .gathers_move = true}), 3, 1e-12);
  stage.program.stages[0].passes.front().begin = 2;
  EXPECT_NEAR(stage.walked({.single_queue = true, .gathers_move = true}), 3 + gathered, 1e-12);
}

/// A gather beside kernels, which wait for nothing: they take as much longer as it lasts.
TEST(StageWalk, KernelsBesideCollectivesTakeLonger) {
  OneStage stage({gather(0), kernels(-1)});
  const auto walked = [&](StageSurroundings around) {
    const RankProgram& program = stage.program.stages[0];
    return walked_stage(stage.program, program, 0, stage.segments, around, {}, stage.times).value();
  };
  const DeviceLoad load = stage.times.load(gather(0), 0, stage.program);
  ASSERT_GT(load.bandwidth, 0);
  const double lost = 1 - 1 / KernelsBeside(load, 0).stretch();
  EXPECT_NEAR(walked({}), 1 + stage.gather_time() * lost, 1e-12);
  // Ahead of a pass that waits anyway, or behind it, it can run without them.
  for (ProgramOp& op : stage.program.stages[0].ops) op.micro_batch = 0;
  EXPECT_NEAR(walked({.before = Seconds(3), .behind = {}}), 3 + 1, 1e-12);
  EXPECT_NEAR(walked({.before = {}, .behind = Seconds(3)}), 1 + 3, 1e-12);
}

/// What is never sent holds nothing up: the walk stays a bound.
TEST(PipelineWalk, EndsWhereNobodySends) {
  TwoStages stages({kernels(-1), kernels(-1)}, {message(OpKind::recv, 0, 3, -1), kernels(0)});
  EXPECT_NEAR(stages.walked(), 2, 1e-12);
}

}  // namespace
}  // namespace tessera
