#include "app/search/stage_walk.h"

#include <gtest/gtest.h>

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
  double walked() { return walked_pipeline(program, segments, times).value(); }
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

/// What is never sent holds nothing up: the walk stays a bound.
TEST(PipelineWalk, EndsWhereNobodySends) {
  TwoStages stages({kernels(-1), kernels(-1)}, {message(OpKind::recv, 0, 3, -1), kernels(0)});
  EXPECT_NEAR(stages.walked(), 2, 1e-12);
}

}  // namespace
}  // namespace tessera
