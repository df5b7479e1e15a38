#include "sim/engine/memory/memory_pressure.h"

#include <gtest/gtest.h>

#include "sim/process/forked_call.h"
#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

constexpr Seconds kKernel = 1_ms;

/// A forward pass that makes one tensor per segment, and a backward pass that frees them in reverse
/// order. Each is `size`; nothing else takes memory.
TimedProgram passes(int tensors, Bytes size, int ranks = 1) {
  ProgramBuilder builder({.tensor = ranks});
  for (int i = 0; i < 2 * tensors; ++i) {
    builder.kernels(0, kKernel);
    builder.last(0).micro_batch = 0;
    builder.last(0).phase = i < tensors ? Phase::forward : Phase::backward;
  }
  TimedProgram timed = builder.build();
  ProgramBlock block;
  block.name = "layer";
  for (int i = 0; i < tensors; ++i)
    block.storages.push_back(
        {"saved" + std::to_string(i), TensorRole::saved_activation, StorageScope::local, size});
  timed.program.blocks.push_back(block);
  for (int i = 0; i < 2 * tensors; ++i) {
    Segment& segment = timed.program.segments[static_cast<std::size_t>(i)];
    const bool forward = i < tensors;
    const StorageId storage(forward ? i : 2 * tensors - 1 - i);
    segment.block = 0;
    segment.touches = {storage};
    segment.memory = {
        {forward ? MemoryEventKind::allocate : MemoryEventKind::free, 0, storage, size}};
    segment.peak_above_start = forward ? size : Bytes(0);
    segment.net_memory = forward ? size : -size;
  }
  return timed;
}

/// The same, and every forward segment can run again. Segments of `kernel` each, a link that is
/// `slower` times as slow as usual.
TimedProgram repeatable(int tensors, Bytes size, Seconds kernel, double slower) {
  TimedProgram timed = passes(tensors, size);
  for (int i = 0; i < tensors; ++i)
    timed.program.segments[static_cast<std::size_t>(i)].repeatable = true;
  for (TimedSegment& segment : timed.segments) {
    segment.kernel_durations = {kernel};
    segment.duration = kernel;
  }
  ClusterSpec cluster = switched_node(1);
  cluster.node.gpu.pcie_bandwidth = cluster.node.gpu.pcie_bandwidth / slower;
  timed.topology = Topology(cluster);
  return timed;
}

std::string error_of(const TimedProgram& timed) {
  try {
    simulate_forked(timed);
  } catch (const ForkedCallError& error) {
    return error.what();
  }
  return "";
}

TEST(MemoryPressure, WithoutALimitUseIsRecordedAlone) {
  const Timeline timeline = simulate_forked(passes(4, 64_MiB));
  EXPECT_EQ(timeline.peak_memory.at(0), 256_MiB);
  EXPECT_EQ(timeline.step_time, 8_ms);
  EXPECT_TRUE(timeline.pressure_copies.empty());
}

TEST(MemoryPressure, TheTensorNeededLastLeavesAndReturnsForItsUse) {
  TimedProgram timed = passes(4, 64_MiB);
  timed.memory_limit.bytes = 192_MiB;
  const Timeline timeline = simulate_forked(timed);
  EXPECT_EQ(timeline.peak_memory.at(0), 192_MiB);
  ASSERT_EQ(timeline.pressure_copies.size(), 2);
  const PressureCopy& away = timeline.pressure_copies[0];
  const PressureCopy& back = timeline.pressure_copies[1];
  EXPECT_TRUE(away.out);
  EXPECT_FALSE(back.out);
  EXPECT_GE(away.start, timeline.ops[0].end);  // it is complete
  EXPECT_GE(timeline.ops[3].start, away.end);  // the fourth tensor takes its place
  EXPECT_GE(back.start, timeline.ops[4].end);  // which frees the fourth
  EXPECT_GE(timeline.ops[7].start, back.end);
}

TEST(MemoryPressure, AnAllocationWaitsForALateDeparture) {
  TimedProgram timed = passes(4, 64_MiB);
  timed.memory_limit.bytes = 192_MiB;
  const Timeline fast = simulate_forked(timed);
  ClusterSpec slow = switched_node(1);
  slow.node.gpu.pcie_bandwidth = slow.node.gpu.pcie_bandwidth / 100;
  timed.topology = Topology(slow);
  const Timeline late = simulate_forked(timed);
  EXPECT_EQ(late.peak_memory.at(0), 192_MiB);  // it would overflow if it did not wait
  EXPECT_EQ(late.ops[3].start, late.pressure_copies[0].end);
  EXPECT_EQ(late.ops[7].start, late.pressure_copies[1].end);
  EXPECT_GT(late.step_time, 10 * fast.step_time);
}

TEST(MemoryPressure, GpusOfOneNodeWaitForTheLinkThatTheyShare) {
  TimedProgram timed = passes(6, 64_MiB, 2);
  timed.memory_limit.bytes = 192_MiB;
  ClusterSpec cluster = switched_node(2);
  const auto step_time = [&](int gpus_per_switch) {
    cluster.node.gpus_per_pcie_switch = gpus_per_switch;
    timed.topology = Topology(cluster);
    const Timeline timeline = simulate_forked(timed);
    EXPECT_EQ(timeline.peak_memory, (std::vector<Bytes>{192_MiB, 192_MiB}));
    return timeline.step_time;
  };
  EXPECT_GT(step_time(2), step_time(1));
}

TEST(MemoryPressure, EqualGpusAreFoldedAsWithoutALimit) {
  TimedProgram timed = passes(6, 64_MiB, 2);
  timed.memory_limit.bytes = 192_MiB;
  const Timeline all = simulate_forked(timed);
  timed.simulation.fold = {.tensor = true, .data = false, .rails = true};
  const Timeline folded = simulate_forked(timed);
  EXPECT_EQ(folded.step_time, all.step_time);
  EXPECT_EQ(folded.peak_memory, all.peak_memory);
  EXPECT_LT(folded.ops.size(), all.ops.size());
}

TEST(MemoryPressure, WhatCannotFitIsAnErrorThatNamesRankOpAndBytes) {
  TimedProgram timed = passes(4, 64_MiB);
  timed.memory_limit.bytes = 48_MiB;
  const std::string error = error_of(timed);
  EXPECT_NE(error.find("out of memory"), std::string::npos) << error;
  EXPECT_NE(error.find("gpu 0 (stage 0) op 0 (segment0 of micro-batch 0) needs 64 MiB"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("16 MiB more than there is: the limit is 48 MiB"), std::string::npos)
      << error;
}

TEST(MemoryPressure, StatesThatDoNotFitAreAnErrorToo) {
  TimedProgram timed = passes(1, 1_MiB);
  timed.program.stages[0].static_memory = 100_MiB;
  timed.memory_limit.bytes = 60_MiB;
  EXPECT_NE(error_of(timed).find("stage 0 holds 100 MiB all the time, 40 MiB more"),
            std::string::npos);
}

TEST(MemoryPressure, ResultsAreMadeAgainWhereTheLinkIsSlow) {
  TimedProgram timed = repeatable(4, 64_MiB, kKernel, 100);
  timed.memory_limit.bytes = 192_MiB;
  const Timeline timeline = simulate_forked(timed);
  EXPECT_EQ(timeline.peak_memory.at(0), 192_MiB);
  EXPECT_TRUE(timeline.pressure_copies.empty());
  ASSERT_EQ(timeline.pressure_reruns.size(), 1);
  const PressureRerun& rerun = timeline.pressure_reruns[0];
  EXPECT_EQ(timeline.ops[static_cast<std::size_t>(rerun.op)].end, kKernel * (rerun.op + 1.0));
  EXPECT_EQ(rerun.bytes, 64_MiB);
  EXPECT_NEAR((rerun.end - rerun.start).value(), kKernel.value(), 1e-12);
  // Right ahead of its use, in the order of the compute stream; the step is as much longer.
  const auto use = static_cast<std::size_t>(7 - rerun.op);
  EXPECT_EQ(timeline.ops[use].start, rerun.end);
  EXPECT_EQ(timeline.ops[use - 1].end, rerun.start);
  EXPECT_NEAR(timeline.step_time.value(), 9 * kKernel.value(), 1e-12);
  ASSERT_EQ(timeline.memory_stalls.size(), 1);
  EXPECT_EQ(timeline.memory_stalls[0].op, static_cast<std::int32_t>(use));
  EXPECT_EQ(timeline.memory_stalls[0].start, rerun.start);
  EXPECT_EQ(timeline.memory_stalls[0].end, rerun.end);
}

TEST(MemoryPressure, TensorsAreCopiedWhereKernelsAreDear) {
  TimedProgram timed = repeatable(4, 64_MiB, 100_ms, 1);
  timed.memory_limit.bytes = 192_MiB;
  const Timeline timeline = simulate_forked(timed);
  EXPECT_EQ(timeline.peak_memory.at(0), 192_MiB);
  EXPECT_TRUE(timeline.pressure_reruns.empty());
  EXPECT_EQ(timeline.pressure_copies.size(), 2);
  EXPECT_LT(timeline.step_time, 820_ms);  // eight kernels; the copies are hidden
}

TEST(MemoryPressure, EveryLimitAboveTheLargestOpIsMetAndTheLedgerReturns) {
  for (const double slower : {1.0, 3.0, 10.0, 30.0}) {
    for (const bool swap : {true, false}) {
      for (std::int64_t limit = 64; limit <= 512; limit += 16) {
        SCOPED_TRACE(std::to_string(slower) + " " + std::to_string(limit));
        TimedProgram timed = repeatable(8, 64_MiB, 5_ms, slower);
        timed.memory_limit.bytes = Bytes(limit * (1 << 20));
        timed.memory_limit.swap = swap;
        const Timeline timeline = simulate_forked(timed);
        EXPECT_LE(timeline.peak_memory.at(0), timed.memory_limit.bytes);
        EXPECT_EQ(timeline.memory.back().used, Bytes(0));
        if (!swap) {
          EXPECT_TRUE(timeline.pressure_copies.empty());
        }
        if (limit == 512) {
          EXPECT_TRUE(timeline.pressure_reruns.empty());
        }
      }
    }
  }
}

TEST(MemoryPressure, WhatRunsAgainIsNoSlowerThanCopiesAlone) {
  for (const double slower : {1.0, 10.0, 30.0, 100.0}) {
    SCOPED_TRACE(slower);
    TimedProgram timed = repeatable(8, 64_MiB, 5_ms, slower);
    timed.memory_limit.bytes = 200_MiB;
    const Timeline either = simulate_forked(timed);
    timed.memory_limit.recompute = false;
    const Timeline copies = simulate_forked(timed);
    EXPECT_TRUE(copies.pressure_reruns.empty());
    EXPECT_LE(either.step_time.value(), copies.step_time.value() * 1.001);
  }
}

TEST(MemoryPressure, WhatAnotherSegmentReadOrChangedIsNotMadeAgain) {
  // The second segment reads what the first made: that is kept, so nothing waits for a chain.
  TimedProgram timed = repeatable(3, 64_MiB, kKernel, 100);
  timed.program.segments[1].touches.push_back(StorageId(0));
  timed.memory_limit.bytes = 128_MiB;
  Timeline timeline = simulate_forked(timed);
  EXPECT_EQ(timeline.peak_memory.at(0), 128_MiB);
  for (const PressureRerun& rerun : timeline.pressure_reruns) EXPECT_NE(rerun.op, 0);
  // The third overwrites what the second read: the second cannot run again either.
  timed.program.segments[2].touches.push_back(StorageId(0));
  timed.program.segments[2].writes.push_back(StorageId(0));
  timeline = simulate_forked(timed);
  for (const PressureRerun& rerun : timeline.pressure_reruns) EXPECT_GT(rerun.op, 1);
}

/// Kernels beside hid those of the compute stream from who chooses what leaves: what they used for
/// the last time left too, and its bytes came free twice.
TEST(MemoryPressure, WhatAKernelUsesStaysWhileAnotherStreamsKernelsBegin) {
  TimedProgram timed = passes(3, 64_MiB);
  timed.program.segments[1].touches.push_back(StorageId(0));  // the second reads the first's tensor
  timed.segments[1].kernel_durations = {4_ms};
  timed.segments[1].duration = 4_ms;
  timed.program.segments[2].peak_above_start = 128_MiB;
  ProgramOp beside;
  beside.stream = StreamKind::data_comm;
  beside.segment = SegmentId(static_cast<int>(timed.program.segments.size()));
  timed.program.segments.emplace_back();
  timed.segments.push_back(timed.segments[0]);
  timed.segments.back().kernel_durations = {2_ms};
  timed.segments.back().duration = 2_ms;
  std::vector<ProgramOp>& ops = timed.program.stages[0].ops;
  ops.insert(ops.begin() + 2, 2, beside);  // the other one begins while the second segment runs
  timed.memory_limit.bytes = 160_MiB;
  const Timeline timeline = simulate_forked(timed);
  ASSERT_EQ(timeline.pressure_copies.size(), 4);
  for (const PressureCopy& copy : timeline.pressure_copies)
    EXPECT_GE(copy.start, timeline.ops[1].end);
  EXPECT_EQ(timeline.memory.back().used, Bytes(0));
}

TEST(MemoryPressure, WithoutCopiesOrWithoutHostMemoryNothingLeaves) {
  TimedProgram timed = passes(4, 64_MiB);
  timed.memory_limit.bytes = 192_MiB;
  timed.memory_limit.swap = false;
  EXPECT_NE(error_of(timed).find("memory.swap is false"), std::string::npos);
  timed.memory_limit.swap = true;
  timed.memory_limit.host_bytes = 32_MiB;
  EXPECT_NE(error_of(timed).find("op 3"), std::string::npos);
}

}  // namespace
}  // namespace tessera::test
