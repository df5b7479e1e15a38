#include "sim/engine/memory/memory_ledger.h"

#include <utility>

#include <gtest/gtest.h>

#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

SegmentCosts memory(Bytes peak_above_start, Bytes net) {
  SegmentCosts costs;
  costs.peak_above_start = peak_above_start;
  costs.net_memory = net;
  return costs;
}

TEST(MemoryLedger, CountsThePeakWhileASegmentRunsAndTheNetAfterIt) {
  ProgramBuilder builder;
  builder.set_static_memory(0, Bytes(1000));
  builder.kernels(0, 1_ms, kNoWaits, memory(Bytes(50), Bytes(30)));
  builder.kernels(0, 1_ms, kNoWaits, memory(Bytes(70), Bytes(-30)));
  const Timeline timeline = simulate_forked(builder.build());

  const std::vector<std::pair<Seconds, int>> expected = {
      {0_s, 1000}, {0_s, 1050}, {1_ms, 1030}, {1_ms, 1100}, {2_ms, 1000}};
  ASSERT_EQ(timeline.memory.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(timeline.memory[i].time, expected[i].first) << i;
    EXPECT_EQ(timeline.memory[i].used, Bytes(expected[i].second)) << i;
  }
  EXPECT_EQ(timeline.peak_memory.at(0), Bytes(1100));
}

TEST(MemoryLedger, ASegmentThatKeepsItsPeakIsOneChange) {
  MemoryLedger ledger(0, Bytes(0));
  ledger.begin_segment(1_ms, Bytes(10));
  ledger.end_segment(2_ms, Bytes(10));
  ASSERT_EQ(ledger.samples().size(), 2);
  EXPECT_EQ(ledger.samples()[1].time, 1_ms);
}

TEST(MemoryLedger, UseBeyondTheCapacityIsAValueNotAnError) {
  ProgramBuilder builder;
  builder.set_static_memory(0, 200_GiB);
  builder.kernels(0, 1_ms);
  TimedProgram program = builder.build();
  program.memory_capacity = 80_GiB;
  EXPECT_EQ(simulate_forked(program).peak_memory.at(0), 200_GiB);
}

TEST(MemoryLedger, EveryRankHasItsOwnStagesMemory) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 2});
  builder.set_static_memory(0, Bytes(100));
  builder.set_static_memory(1, Bytes(200));
  const Timeline timeline = simulate_forked(builder.build());
  EXPECT_EQ(timeline.peak_memory,
            (std::vector<Bytes>{Bytes(100), Bytes(100), Bytes(200), Bytes(200)}));
}

}  // namespace
}  // namespace tessera::test
