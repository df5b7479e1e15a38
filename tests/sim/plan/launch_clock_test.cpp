// How far a host runs ahead of its GPU.
#include "sim/plan/launch_clock.h"

#include <gtest/gtest.h>

#include "sim/plan/timed_program.h"

namespace tessera {
namespace {

/// Ops of a job, by default of its stage 0, whose GPUs are on one switch.
class SmallProgram {
 public:
  explicit SmallProgram(const ParallelLayout& layout = {}) {
    program_.layout = layout;
    program_.stages.resize(static_cast<std::size_t>(layout.pipeline));
    for (int stage = 0; stage < layout.pipeline; ++stage)
      program_.stages[static_cast<std::size_t>(stage)].stage = stage;
  }

  /// A kernel; gives its number.
  std::int32_t kernel(Seconds duration, Seconds host_time = {}) {
    ProgramOp op;
    op.segment = SegmentId(static_cast<int>(segments_.size()));
    program_.segments.emplace_back();
    segments_.push_back(
        {.kernel_durations = {duration}, .duration = duration, .host_time = host_time});
    return add(op);
  }
  std::int32_t all_reduce(Bytes bytes, std::int32_t waits_for = -1) {
    ProgramOp op;
    op.kind = OpKind::all_reduce;
    op.stream = StreamKind::tensor_comm;
    op.bytes = bytes;
    op.waits = {waits_for, -1};
    return add(op);
  }
  std::int32_t add(const ProgramOp& op) {
    program_.stages[stage_].ops.push_back(op);
    return static_cast<std::int32_t>(program_.stages[stage_].ops.size()) - 1;
  }
  void wait(std::int32_t op, std::int32_t for_op) {
    program_.stages[stage_].ops[static_cast<std::size_t>(op)].waits = {for_op, -1};
  }
  /// Whose ops come next.
  void go_to_stage(std::size_t stage) { stage_ = stage; }
  TimedProgram build() const {
    ClusterSpec cluster;
    GpuSpec& gpu = cluster.node.gpu;
    cluster.id = cluster.node.id = gpu.id = "test";
    gpu.sm_count = 100;
    gpu.boost_clock = Hertz(1e9);
    gpu.fp32 = 10_TFLOPS;
    gpu.memory = 80_GiB;
    gpu.memory_bandwidth = 2000_GBps;
    gpu.pcie_generation = 4;
    gpu.pcie_bandwidth = 32_GBps;
    gpu.nvlink_generation = 4;
    gpu.nvlink_bandwidth = 100_GBps;
    gpu.nvlink_links = 1;
    cluster.node.gpu_count = program_.layout.world_size();
    cluster.node.interconnect = GpuInterconnect::nvswitch;
    cluster.node.nvlink_bandwidth_per_link = 100_GBps;
    cluster.node.nvlink_latency = 1_us;
    return {.program = program_,
            .segments = segments_,
            .topology = Topology(cluster),
            .communication_host_time = {},
            .memory_capacity = 80_GiB,
            .records_streams = true};
  }

 private:
  Program program_;
  std::size_t stage_ = 0;
  std::vector<TimedSegment> segments_;
};

/// `launches` kernels of 1 ms, a segment each, that the host issues every `host_time`.
TimedProgram kernels_in_a_row(int launches, Seconds host_time) {
  SmallProgram program;
  for (int i = 0; i < launches; ++i) program.kernel(1_ms, host_time);
  return program.build();
}

TEST(LaunchClock, OfAFrameworkThatRecordsNoStreamsIsNotNeeded) {
  TimedProgram timed = kernels_in_a_row(3, 0_ms);
  timed.records_streams = false;
  EXPECT_TRUE(launch_times(timed)[0].empty());
}

// Kernel i ends i + 1 ms after the start. The host issues 1,024 at once, and each of those behind
// when the one 1,024 ahead of it has ended.
TEST(LaunchClock, AHostIsAQueueAheadAtMost) {
  const StepLaunches times = launch_times(kernels_in_a_row(1100, 0_ms))[0].later;
  EXPECT_EQ(times.issued_at(1024), 0_ms);
  EXPECT_NEAR(times.issued_at(1025) / 1_ms, 1, 1e-9);   // comes to it when kernel 0 has ended
  EXPECT_NEAR(times.issued_at(1099) / 1_ms, 75, 1e-9);  // kernel 74
}

// 1,024 / 7 all-reduces are in the queue at most: the 201st is issued when the 55th has ended.
TEST(LaunchClock, ACollectiveTakesSevenPlacesOfTheQueue) {
  SmallProgram program({.tensor = 2});
  for (int i = 0; i < 202; ++i) program.all_reduce(1_MiB);
  const StepLaunches times = launch_times(program.build())[0].later;
  constexpr int kQueued = 1024 / 7;
  EXPECT_EQ(times.issued_at(kQueued), Seconds(0));
  EXPECT_NEAR(times.issued_at(201) / times.communicated_by(200 - kQueued), 1, 1e-9);
}

TEST(LaunchClock, AHostThatIsSlowerThanItsGpuIsNeverAhead) {
  const StepLaunches times = launch_times(kernels_in_a_row(1100, 2_ms))[0].later;
  EXPECT_NEAR(times.issued_at(1099) / 1_ms, 2 * 1099, 1e-6);
}

// A kernel of 50 ms, then an all-reduce that waits for it, issued at once: what it uses is
// another's behind both.
TEST(LaunchClock, CommunicationEndsBehindWhatItWaitsFor) {
  SmallProgram program({.tensor = 2});
  const std::int32_t made = program.kernel(50_ms);
  program.all_reduce(1_MiB, made);
  program.kernel(1_ms);
  const StepLaunches times = launch_times(program.build())[0].later;
  EXPECT_EQ(times.communicated_by(made), 0_ms);
  EXPECT_EQ(times.issued_at(2), 0_ms);
  EXPECT_GT(times.communicated_by(2), 50_ms);
  EXPECT_LT(times.communicated_by(2), 51_ms);
}

// 200 all-reduces that the hosts issue every 1 ms, and the slowest of them every 1.05 ms: the last
// one can start 10 ms behind its launch here. Where every call holds all hosts they go in step.
TEST(LaunchClock, AHostRunsAheadOfTheSlowestOfItsGroup) {
  SmallProgram program({.tensor = 2});
  for (int i = 0; i < 200; ++i) program.all_reduce(1_KiB);
  TimedProgram timed = program.build();
  timed.communication_host_time = 1_ms;
  const auto behind = [&] {
    const StepLaunches times = launch_times(timed)[0].later;
    return (times.communicated_by(199) - times.issued_at(199)) / 1_ms;
  };
  EXPECT_NEAR(behind(), 1 + 200 * 0.05, 0.1);
  timed.communication_host_time = 0_ms;
  timed.group_host_time[static_cast<std::size_t>(GroupKind::tensor)] = 1_ms;
  EXPECT_NEAR(behind(), 1, 0.1);
}

// The host waits: it is no more ahead.
TEST(LaunchClock, AHostThatReadsAMessageHasItsKernelsBehindIt) {
  SmallProgram program({.pipeline = 2});
  program.kernel(50_ms);
  ProgramOp message;
  message.kind = OpKind::recv;
  message.stream = StreamKind::pipeline_recv;
  message.peer_stage = 1;
  message.host_sync = true;
  program.add(message);
  program.kernel(1_ms);
  EXPECT_NEAR(launch_times(program.build())[0].later.issued_at(2) / 1_ms, 50, 1e-9);
}

ProgramOp message(OpKind kind, int peer, int tag, std::int32_t behind) {
  ProgramOp op;
  op.kind = kind;
  op.stream = kind == OpKind::send ? StreamKind::pipeline_send : StreamKind::pipeline_recv;
  op.peer_stage = peer;
  op.tag = tag;
  op.waits = {behind, -1};
  return op;
}

// Stage 0 sends behind 10 ms, stage 1 answers behind 20 more; the kernel that waits for the answer
// ends at 31 ms, and the host of stage 0, which reads nothing, had issued all at once.
TEST(LaunchClock, AHostIsAheadByTheRoundTripOfThePipeline) {
  SmallProgram program({.tensor = 2, .pipeline = 2});
  const auto kernel_behind = [&](std::int32_t received, Seconds duration) {
    const std::int32_t kernel = program.kernel(duration);
    program.wait(kernel, received);
    return kernel;
  };
  program.add(message(OpKind::send, 1, 0, program.kernel(10_ms)));
  kernel_behind(program.add(message(OpKind::recv, 1, 1, -1)), 1_ms);
  const std::int32_t last = program.all_reduce(1_KiB, 3);
  program.go_to_stage(1);
  const std::int32_t received = program.add(message(OpKind::recv, 0, 0, -1));
  program.add(message(OpKind::send, 0, 1, kernel_behind(received, 20_ms)));
  const StepLaunches times = launch_times(program.build())[0].later;
  EXPECT_EQ(times.issued_at(last), 0_ms);
  EXPECT_NEAR(times.communicated_by(last) / 1_ms, 31, 0.1);
}

/// Micro-batches of a kernel of 1 ms and an all-reduce, sent to the next of three stages one by
/// one; then a gradient is received. `launches`: kernels of each.
SmallProgram first_of_three_stages(int micro_batches, int launches = 1) {
  SmallProgram program({.tensor = 2, .pipeline = 3});
  for (int i = 0; i < micro_batches; ++i) {
    for (int k = 0; k < launches; ++k) program.kernel(1_ms);
    ProgramOp sent = message(OpKind::send, 1, i, program.all_reduce(1_KiB));
    sent.micro_batch = i;
    program.add(sent);
  }
  program.add(message(OpKind::recv, 1, micro_batches, -1));
  return program;
}

// Kernel, all-reduce, send of each micro-batch are ops 3 k to 3 k + 2. The second stage takes
// micro-batch 0 at once, and 1 when it has begun its job: the all-reduce of 2, op 7, is behind
// that.
TEST(LaunchClock, InTheFirstStepStreamsMeetStagesThatHaveNotBegun) {
  const LaunchTimes times = launch_times(first_of_three_stages(3).build())[0];
  EXPECT_EQ(times.first.issued_at(8), 0_ms);
  EXPECT_LT(times.first.communicated_by(4), 1_s);
  EXPECT_GT(times.first.communicated_by(7), Seconds(3600));
  EXPECT_LT(times.later.communicated_by(7), 1_s);
}

// 600 kernels of each of four micro-batches: the queue is full within micro-batch 2, the host goes
// on when the second stage has begun, and is a queue ahead still when the third is waited for.
TEST(LaunchClock, StagesBeginOneAfterTheOther) {
  constexpr int kOps = 602;  // of a micro-batch
  const StepLaunches times = launch_times(first_of_three_stages(4, 600).build())[0].first;
  EXPECT_LT(times.issued_at(2 * kOps), 1_s);
  const Seconds second_begins = times.issued_at(4 * kOps - 1);
  EXPECT_GT(second_begins, Seconds(3600));
  EXPECT_GT(times.communicated_by(4 * kOps - 2), 1.5 * second_begins);
}

// It has received something, and so its host is not ahead of those in front of it.
TEST(LaunchClock, AStageInTheMiddleBeginsWithItsMessages) {
  SmallProgram program({.tensor = 2, .pipeline = 3});
  program.add(message(OpKind::send, 1, 0, program.kernel(1_ms)));
  program.go_to_stage(1);
  const std::int32_t received = program.add(message(OpKind::recv, 0, 0, -1));
  ProgramOp sent = message(OpKind::send, 2, 1, received);
  sent.micro_batch = 1;
  program.add(sent);
  const std::int32_t last = program.all_reduce(1_KiB);
  EXPECT_LT(launch_times(program.build())[1].first.communicated_by(last), 1_s);
}

}  // namespace
}  // namespace tessera
