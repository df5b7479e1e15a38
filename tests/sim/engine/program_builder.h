#pragma once

#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/plan/timed_program.h"

namespace tessera::test {

/// A GPU for nodes of tests; the engine reads none of its figures.
inline GpuSpec some_gpu() {
  GpuSpec gpu;
  gpu.id = "test-gpu";
  gpu.sm_count = 100;
  gpu.boost_clock = Hertz(1e9);
  gpu.fp32 = 10_TFLOPS;
  gpu.memory = 80_GiB;
  gpu.memory_bandwidth = 2000_GBps;
  gpu.nvlink_generation = 4;
  gpu.nvlink_links = 1;
  gpu.pcie_generation = 4;
  gpu.pcie_bandwidth = 32_GBps;
  return gpu;
}

/// One node of `gpus` GPUs on a switch: `rate` per direction of a port, `hop_latency` per hop.
inline ClusterSpec switched_node(int gpus, BytesPerSecond rate = 100_GBps,
                                 Seconds hop_latency = 1_us) {
  ClusterSpec cluster;
  cluster.id = "test-cluster";
  cluster.node.id = "test-node";
  cluster.node.gpu = some_gpu();
  cluster.node.gpu.nvlink_bandwidth = rate;
  cluster.node.gpu_count = gpus;
  cluster.node.interconnect = GpuInterconnect::nvswitch;
  cluster.node.nvlink_bandwidth_per_link = rate;
  cluster.node.nvlink_latency = hop_latency;
  return cluster;
}

using Waits = std::array<std::int32_t, 2>;
constexpr Waits kNoWaits{-1, -1};

/// Host and memory side of a segment; the duration stands beside it.
struct SegmentCosts {
  Seconds host_time;
  bool host_sync = false;
  Bytes peak_above_start;
  Bytes net_memory;
};

/// Writes small timed programs op by op. Functions that add an op return its number, for waits.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(ParallelLayout layout = {}) {
    program_.layout = layout;
    program_.stages.resize(static_cast<std::size_t>(layout.pipeline));
    for (int stage = 0; stage < layout.pipeline; ++stage) {
      program_.stages[static_cast<std::size_t>(stage)].stage = stage;
    }
  }

  std::int32_t kernels(int stage, Seconds duration, Waits waits = kNoWaits,
                       const SegmentCosts& costs = {}) {
    return kernels(stage, std::vector{duration}, waits, costs);
  }
  /// A segment of several kernels.
  std::int32_t kernels(int stage, const std::vector<Seconds>& durations, Waits waits = kNoWaits,
                       const SegmentCosts& costs = {}) {
    ProgramOp op;
    op.waits = waits;
    op.segment = SegmentId(static_cast<int>(program_.segments.size()));
    Segment segment;
    segment.name = "segment" + std::to_string(program_.segments.size());
    segment.host_sync = costs.host_sync;
    segment.peak_above_start = costs.peak_above_start;
    segment.net_memory = costs.net_memory;
    program_.segments.push_back(segment);
    TimedSegment timed;
    timed.kernel_durations = durations;
    timed.duration = std::accumulate(durations.begin(), durations.end(), Seconds(0));
    timed.host_time = costs.host_time;
    timed_segments_.push_back(timed);
    return add(stage, op);
  }

  std::int32_t all_reduce(int stage, GroupKind group, Bytes bytes, StreamKind stream,
                          Waits waits = kNoWaits) {
    return collective(OpKind::all_reduce, stage, group, bytes, stream, waits);
  }
  std::int32_t collective(OpKind kind, int stage, GroupKind group, Bytes bytes, StreamKind stream,
                          Waits waits = kNoWaits) {
    ProgramOp op;
    op.kind = kind;
    op.stream = stream;
    op.group = group;
    op.bytes = bytes;
    op.waits = waits;
    return add(stage, op);
  }

  std::int32_t send(int stage, int to_stage, int tag, Bytes bytes, Waits waits = kNoWaits) {
    return add(stage,
               message(OpKind::send, StreamKind::pipeline_send, to_stage, tag, bytes, waits));
  }
  std::int32_t recv(int stage, int from_stage, int tag, Bytes bytes, Waits waits = kNoWaits) {
    return add(stage,
               message(OpKind::recv, StreamKind::pipeline_recv, from_stage, tag, bytes, waits));
  }

  /// The op that was added last to `stage`, for whatever the functions above leave out.
  ProgramOp& last(int stage) { return stage_of(stage).ops.back(); }
  void set_static_memory(int stage, Bytes bytes) { stage_of(stage).static_memory = bytes; }

  TimedProgram on(const ClusterSpec& cluster) const {
    TimedProgram timed{.program = program_,
                       .segments = timed_segments_,
                       .topology = Topology(cluster),
                       .communication_host_time = {},
                       .memory_capacity = 80_GiB};
    timed.collectives.slows_kernels = false;  // durations stay as written
    timed.simulation.fold = {.tensor = false, .data = false, .rails = false};
    timed.collectives.nccl_messages = false;  // likewise
    return timed;
  }
  /// On a switched node with a GPU per rank.
  TimedProgram build() const { return on(switched_node(program_.layout.world_size())); }

 private:
  static ProgramOp message(OpKind kind, StreamKind stream, int peer, int tag, Bytes bytes,
                           Waits waits) {
    ProgramOp op;
    op.kind = kind;
    op.stream = stream;
    op.peer_stage = peer;
    op.tag = tag;
    op.bytes = bytes;
    op.waits = waits;
    return op;
  }
  RankProgram& stage_of(int stage) { return program_.stages[static_cast<std::size_t>(stage)]; }
  std::int32_t add(int stage, const ProgramOp& op) {
    stage_of(stage).ops.push_back(op);
    return static_cast<std::int32_t>(stage_of(stage).ops.size()) - 1;
  }

  Program program_;
  std::vector<TimedSegment> timed_segments_;
};

}  // namespace tessera::test
