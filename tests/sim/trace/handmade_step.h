#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/plan/timed_program.h"

namespace tessera::testing {

/// GPUs of 100 FLOP/s fp32 and 200 FLOP/s bf16, so that expected values can be worked out in the
/// head.
inline ClusterSpec handmade_cluster(int gpus) {
  ClusterSpec cluster;
  cluster.id = "handmade";
  cluster.node.id = "handmade-node";
  cluster.node.gpu.id = "G100";
  cluster.node.gpu.fp32 = FlopsPerSecond(100);
  cluster.node.gpu.bf16 = FlopsPerSecond(200);
  cluster.node.gpu.sm_count = 1;
  cluster.node.gpu.boost_clock = Hertz(1);
  cluster.node.gpu.memory = 80_B;
  cluster.node.gpu.memory_bandwidth = BytesPerSecond(1);
  cluster.node.gpu.pcie_bandwidth = BytesPerSecond(1);
  cluster.node.gpu_count = gpus;
  return cluster;
}

/// A step without segments, ops or FLOPs on GPUs of 80 bytes; one empty program per stage.
inline TimedProgram handmade_program(ParallelLayout layout) {
  TimedProgram timed{.program = {},
                     .segments = {},
                     .topology = Topology(handmade_cluster(layout.world_size())),
                     .communication_host_time = {},
                     .memory_capacity = 80_B};
  timed.program.layout = layout;
  timed.program.stages.resize(static_cast<std::size_t>(layout.pipeline));
  for (int stage = 0; stage < layout.pipeline; ++stage) {
    timed.program.stages[static_cast<std::size_t>(stage)].stage = stage;
  }
  return timed;
}

/// Adds a segment of one fp32 GEMM per duration, named "<name>.0", "<name>.1", ...
inline SegmentId add_segment(TimedProgram& timed, const std::string& name, Phase phase,
                             const std::vector<double>& kernel_seconds) {
  Segment segment;
  segment.name = name;
  segment.phase = phase;
  TimedSegment times;
  for (const double seconds : kernel_seconds) {
    Kernel gemm;
    gemm.kind = KernelKind::gemm;
    gemm.flops = Flops(10);
    gemm.bytes_read = 3_B;
    segment.kernels.push_back({gemm, name + "." + std::to_string(segment.kernels.size())});
    times.kernel_durations.emplace_back(seconds);
    times.duration += Seconds(seconds);
  }
  timed.program.segments.push_back(segment);
  timed.segments.push_back(times);
  return SegmentId(static_cast<std::int32_t>(timed.segments.size()) - 1);
}

inline ProgramOp run_of(SegmentId segment, Phase phase, std::int32_t micro_batch = -1) {
  ProgramOp op;
  op.phase = phase;
  op.segment = segment;
  op.micro_batch = micro_batch;
  return op;
}

inline ProgramOp all_reduce_over(GroupKind group, std::int32_t after) {
  ProgramOp op;
  op.kind = OpKind::all_reduce;
  op.stream = group == GroupKind::tensor ? StreamKind::tensor_comm : StreamKind::data_comm;
  op.phase = group == GroupKind::tensor ? Phase::forward : Phase::gradient_reduction;
  op.group = group;
  op.bytes = 64_B;
  op.waits[0] = after;
  return op;
}

inline ProgramOp send_to(int stage, std::int32_t tag, std::int32_t after) {
  ProgramOp op;
  op.kind = OpKind::send;
  op.stream = StreamKind::pipeline_send;
  op.peer_stage = stage;
  op.tag = tag;
  op.bytes = 8_B;
  op.waits[0] = after;
  return op;
}

inline ProgramOp recv_from(int stage, std::int32_t tag) {
  ProgramOp op;
  op.kind = OpKind::recv;
  op.stream = StreamKind::pipeline_recv;
  op.peer_stage = stage;
  op.tag = tag;
  op.bytes = 8_B;
  return op;
}

/// Appends to the program of `stage`; returns the op's number.
inline std::int32_t add_op(TimedProgram& timed, int stage, const ProgramOp& op) {
  auto& ops = timed.program.stages[static_cast<std::size_t>(stage)].ops;
  ops.push_back(op);
  return static_cast<std::int32_t>(ops.size()) - 1;
}

/// Appends `op` so that it begins once the op `after` has ended.
inline std::int32_t add_op_after(TimedProgram& timed, int stage, ProgramOp op, std::int32_t after) {
  op.waits[0] = after;
  return add_op(timed, stage, op);
}

/// Adds one micro-batch's forward or backward to a stage: recv, run, send.
inline void add_stage_run(TimedProgram& timed, int stage, Phase phase, int micro_batch) {
  const int stages = timed.program.layout.pipeline;
  const int from = phase == Phase::forward ? stage - 1 : stage + 1;
  const int to = phase == Phase::forward ? stage + 1 : stage - 1;
  const int tag = 2 * micro_batch + (phase == Phase::forward ? 0 : 1);
  const SegmentId segment(phase == Phase::forward ? 0 : 1);
  const auto exists = [&](int peer) { return peer >= 0 && peer < stages; };
  const std::int32_t input = exists(from) ? add_op(timed, stage, recv_from(from, tag)) : -1;
  const std::int32_t run = add_op_after(timed, stage, run_of(segment, phase, micro_batch), input);
  if (exists(to)) add_op(timed, stage, send_to(to, tag, run));
}

/// Forward (1 s) and backward (2 s) of `micro_batches` in 1F1B order over equal stages; nothing
/// else.
inline TimedProgram one_f_one_b_step(int stages, int micro_batches) {
  TimedProgram timed = handmade_program({.tensor = 1, .pipeline = stages, .data = 1});
  timed.program.micro_batches = micro_batches;
  add_segment(timed, "layers.forward", Phase::forward, {0.5, 0.5});
  add_segment(timed, "layers.backward", Phase::backward, {1.5, 0.5});
  for (int stage = 0; stage < stages; ++stage) {
    const int warm_up = std::min(stages - 1 - stage, micro_batches);
    for (int i = 0; i < micro_batches + warm_up; ++i) {
      if (i < micro_batches) add_stage_run(timed, stage, Phase::forward, i);
      if (i >= warm_up) add_stage_run(timed, stage, Phase::backward, i - warm_up);
    }
  }
  return timed;
}

}  // namespace tessera::testing
