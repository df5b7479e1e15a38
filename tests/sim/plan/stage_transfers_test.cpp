#include "sim/plan/memory/stage_transfers.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

/// Kernels of a second each, and a reduction of gradients that takes a fifth of the multiprocessors
/// and asks for half of the memory's bandwidth.
class StageWalkTest : public ::testing::Test {
 protected:
  StageWalkTest() : segments_(1) { segments_.front().kernels.emplace_back(); }

  static ProgramOp reduction(Bytes freed = {}) {
    ProgramOp op;
    op.kind = OpKind::reduce_scatter;
    op.stream = StreamKind::data_comm;
    op.phase = Phase::gradient_reduction;
    op.freed = freed;
    return op;
  }
  static ProgramOp kernels(Bytes allocated = {}) {
    ProgramOp op;
    op.segment = SegmentId(0);
    op.allocated = allocated;
    return op;
  }

  double walked(std::vector<ProgramOp> ops, bool products, Bytes limit = {}) const {
    const OpTime time = [&](const GraphOp& op) {
      if (op.kind == GraphOpKind::kernel) return OpCost{.time = Seconds(1), .product = products};
      return OpCost{.time = Seconds(1), .load = {.multiprocessors = 0.2, .bandwidth = 0.5}};
    };
    RankProgram stage;
    stage.ops = std::move(ops);
    return walked_time(stage, {.segments = segments_, .time = time, .limit = limit, .held = 1_GiB})
        .value();
  }

 private:
  std::vector<Segment> segments_;
};

TEST_F(StageWalkTest, KernelsAndCollectivesBesideEachOtherTakeLonger) {
  EXPECT_DOUBLE_EQ(walked({reduction()}, false), 1);
  EXPECT_DOUBLE_EQ(walked({kernels(), kernels()}, false), 2);
  // Both ask for more memory bandwidth than there is: 1 + 0.5 times as long.
  EXPECT_NEAR(walked({reduction(), kernels()}, false), 1.5, 1e-9);
  // Products have 0.8 of the multiprocessors for a second, and all behind it: 1 + (1 - 0.8).
  EXPECT_NEAR(walked({reduction(), kernels()}, true), 1.2, 3e-3) << "as near as four rounds come";
}

/// Two kernels that each need the GiB that the reduction of the one before gives back.
TEST_F(StageWalkTest, WhatWaitsForRoomDoesNotWaitForWhatSlowedItDown) {
  ProgramOp behind = reduction(1_GiB);
  behind.waits = {0, -1};
  const std::vector<ProgramOp> ops{kernels(1_GiB), behind, kernels(1_GiB)};
  EXPECT_DOUBLE_EQ(walked(ops, true, 2_GiB), 1 + 1 + 1) << "the reduction runs alone";
  EXPECT_NEAR(walked(ops, true, 3_GiB), 1 + 1.2, 3e-3) << "and here beside kernels";
}

/// What is launched ahead of kernels takes memory when it starts: a gather behind a reduction that
/// trails is in nobody's way yet.
TEST_F(StageWalkTest, GathersTakeMemoryWhenTheyStart) {
  ProgramOp trails = reduction(1_GiB), gather = reduction();
  trails.waits = {0, -1};
  gather.phase = Phase::backward;
  gather.allocated = 1_GiB;
  // Kernels from 0 to 1 and to 2.2; beside the second ones the reduction, then the gather to 3.
  EXPECT_NEAR(walked({kernels(1_GiB), trails, gather, kernels(1_GiB)}, true, 3_GiB), 3, 1e-3);
}

}  // namespace
}  // namespace tessera
