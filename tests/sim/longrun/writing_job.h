#pragma once

#include "hw/node.h"
#include "sim/plan/timed_program.h"

namespace tessera::test {

/// `nodes` of two GPUs with a NIC of 10 GB/s each.
inline ClusterSpec writing_cluster(int nodes) {
  GpuSpec gpu;
  gpu.id = "gpu";
  gpu.sm_count = 1;
  gpu.boost_clock = Hertz(1e9);
  gpu.fp32 = 1_TFLOPS;
  gpu.memory = 1_GiB;
  gpu.memory_bandwidth = 1_GBps;
  gpu.pcie_generation = 4;
  gpu.pcie_bandwidth = 64_GBps;
  ClusterSpec spec = single_gpu_cluster(gpu);
  spec.node_count = nodes;
  spec.node.gpu_count = 2;
  spec.node.nic_count = 2;
  spec.node.nic_bandwidth = 10_GBps;
  return spec;
}

/// A replica on every GPU, which does nothing.
inline TimedProgram idle_writers(int nodes) {
  TimedProgram timed{.program = {},
                     .segments = {},
                     .topology = Topology(writing_cluster(nodes)),
                     .communication_host_time = {},
                     .memory_capacity = {}};
  timed.program.layout.data = 2 * nodes;
  timed.program.layout.shard = 2 * nodes;  // every replica holds a part
  timed.program.stages.resize(1);
  return timed;
}

}  // namespace tessera::test
