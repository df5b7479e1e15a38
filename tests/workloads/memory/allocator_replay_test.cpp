#include "workloads/memory/allocator_replay.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

/// Two passes, ops 0 and 1, ahead of an update, op 2. Block 0 has one storage, which a collective
/// uses.
Program small_program() {
  Program program;
  program.stages.resize(1);
  program.stages[0].update_begin = 2;
  program.blocks.resize(1);
  program.blocks[0].storages.resize(1);
  program.blocks[0].storages[0].communicated = true;
  return program;
}

MemoryStep step_of(bool allocates, std::int32_t op, std::int64_t id, Bytes bytes) {
  MemoryStep step;
  step.op = op;
  step.allocates = allocates;
  step.allocation.id = id;
  step.allocation.bytes = bytes;
  step.allocation.block = -1;
  return step;
}
MemoryStep communicated(MemoryStep step) {
  step.allocation.block = 0;
  step.allocation.storage = StorageId(0);
  return step;
}

// 30 and 60 MiB one after the other are 90; 80 more have no room, so both go back to the device.
TEST(AllocatorReplay, BehindTheUpdateHoldsLessWhereTheDeviceWasFull) {
  const Program program = small_program();
  const StepLaunches in_order;
  AllocatorReplay replay(program, 0, {.capacity = 100_MiB}, in_order);
  for (const auto& [id, bytes] : {std::pair{0, 30_MiB}, std::pair{1, 60_MiB}})
    for (const bool allocates : {true, false}) replay.add(step_of(allocates, 0, id, bytes));
  replay.add(step_of(true, 1, 2, 80_MiB));
  EXPECT_EQ(replay.reserved_behind_passes(), 80_MiB);
  replay.add(step_of(true, 2, 3, 10_MiB));
  EXPECT_EQ(replay.reserved(false), 90_MiB);
  EXPECT_EQ(replay.reserved_behind_passes(), 90_MiB);  // 80 and 10
}

// The host waits for the stream, and the segment of 60 MiB is the device's again: 50 are not cut
// from it.
TEST(AllocatorReplay, AFullDeviceGetsBackWhatStreamsHaveLeft) {
  const Program program = small_program();
  const StepLaunches behind{.issued = {0_s, 0_s, 0_s}, .communicated = {1_s, 1_s, 1_s}};
  AllocatorReplay replay(program, 0, {.capacity = 100_MiB}, behind);
  for (const bool allocates : {true, false})
    replay.add(communicated(step_of(allocates, 0, 0, 60_MiB)));
  replay.add(step_of(true, 1, 1, 50_MiB));
  EXPECT_EQ(replay.reserved_behind_passes(), 50_MiB);
}

// In the first step the stream is behind, and a second piece is made; in the next one it is not.
TEST(AllocatorReplay, EveryStepHasLaunchesOfItsOwn) {
  const Program program = small_program();
  const StepLaunches behind{.issued = {0_s, 0_s, 0_s}, .communicated = {1_s, 1_s, 1_s}};
  const StepLaunches in_time{.issued = {0_s, 0_s, 0_s}, .communicated = {0_s, 0_s, 0_s}};
  const auto reserved = [&](const StepLaunches& first, const StepLaunches& later) {
    AllocatorReplay replay(program, 0, {}, first);
    for (int step = 0; step < 2; ++step) {
      for (const std::int64_t id : {0, 1})
        for (const bool allocates : {true, false})
          replay.add(communicated(step_of(allocates, 0, id, 60_MiB)));
      replay.end_step(later);
    }
    return replay.reserved(false);
  };
  EXPECT_EQ(reserved(in_time, in_time), 60_MiB);
  EXPECT_EQ(reserved(behind, in_time), 120_MiB);
  EXPECT_EQ(reserved(in_time, behind), 120_MiB);
}

}  // namespace
}  // namespace tessera
