#include <gtest/gtest.h>

#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

// Two ranks; a ring over a switch of 100 GB/s with hops of 1 us. The collective's own time is taken
// from the simulation: what is tested is when ops start.
constexpr ParallelLayout kPair{.tensor = 2, .pipeline = 1, .data = 1};

Timeline simulate_with(bool single_queue, const ProgramBuilder& builder) {
  TimedProgram program = builder.build();
  program.single_hardware_queue = single_queue;
  return simulate_forked(program);
}

/// dgrad (1 ms), its all-reduce, wgrad (2 ms), what waits for both.
ProgramBuilder overlapped_backward() {
  ProgramBuilder builder(kPair);
  const auto dgrad = builder.kernels(0, 1_ms);
  const auto sum =
      builder.all_reduce(0, GroupKind::tensor, 10_MiB, StreamKind::tensor_comm, {dgrad, -1});
  builder.kernels(0, 2_ms);
  builder.kernels(0, 1_ms, {sum, -1});
  return builder;
}

TEST(SingleHardwareQueue, RunsTheWeightGradientBesideTheAllReduceThatWasLaunchedAheadOfIt) {
  // dgrad 0-1 ms; all-reduce and wgrad start together; 1 + 2 + 1 ms, and the sum is hidden.
  const Timeline timeline = simulate_with(true, overlapped_backward());
  EXPECT_NEAR(timeline.ops[1].start.value(), 1e-3, 1e-12);
  EXPECT_NEAR(timeline.ops[2].start.value(), 1e-3, 1e-12);
  EXPECT_NEAR(timeline.step_time.value(), 4e-3, 1e-12);
}

TEST(SingleHardwareQueue, LetsNothingPassAnOpThatWaits) {
  // The all-reduce waits for kernels of 1 ms; the second one on another stream is free to go, but
  // was launched behind it.
  ProgramBuilder builder(kPair);
  const auto first = builder.kernels(0, 1_ms);
  builder.all_reduce(0, GroupKind::tensor, 1_MiB, StreamKind::tensor_comm, {first, -1});
  builder.all_reduce(0, GroupKind::data, Bytes(0), StreamKind::data_comm);
  EXPECT_NEAR(simulate_with(false, builder).ops[2].start.value(), 0, 1e-12);
  EXPECT_NEAR(simulate_with(true, builder).ops[2].start.value(), 1e-3, 1e-12);
}

TEST(SingleHardwareQueue, HoldsBackWhatIsLaunchedBehindASegmentUntilItsLastKernelStarts) {
  // Kernels of 1, 2 and 3 ms follow each other through the queue: the third enters it at 3 ms.
  ProgramBuilder builder(kPair);
  builder.kernels(0, {1_ms, 2_ms, 3_ms});
  builder.all_reduce(0, GroupKind::tensor, 1_MiB, StreamKind::tensor_comm);
  EXPECT_NEAR(simulate_with(false, builder).ops[1].start.value(), 0, 1e-12);
  const Timeline timeline = simulate_with(true, builder);
  EXPECT_NEAR(timeline.ops[1].start.value(), 3e-3, 1e-12);
  EXPECT_NEAR(timeline.ops[0].end.value(), 6e-3, 1e-12);
}

TEST(SingleHardwareQueue, AStreamThatIsBusyHoldsBackTheOthers) {
  // Two ops of one stream: the second waits for the first, and what is behind it with it.
  ProgramBuilder builder(kPair);
  builder.kernels(0, 1_ms);
  builder.kernels(0, 2_ms);
  builder.all_reduce(0, GroupKind::tensor, 1_MiB, StreamKind::tensor_comm);
  EXPECT_NEAR(simulate_with(true, builder).ops[2].start.value(), 1e-3, 1e-12);
}

TEST(SingleHardwareQueue, CopiesHaveQueuesOfTheirOwn) {
  ProgramBuilder builder(kPair);
  const auto copy = [&](OpKind kind, StreamKind stream) {
    builder.collective(kind, 0, GroupKind::tensor, 64_MiB, stream);
  };
  copy(OpKind::copy_out, StreamKind::device_to_host);
  builder.kernels(0, 1_ms);
  builder.kernels(0, 1_ms);
  copy(OpKind::copy_in, StreamKind::host_to_device);
  const Timeline timeline = simulate_with(true, builder);
  for (const std::size_t op : {0U, 1U, 3U}) EXPECT_EQ(timeline.ops[op].start, Seconds(0)) << op;
}

}  // namespace
}  // namespace tessera::test
