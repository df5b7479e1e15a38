#include "sim/longrun/checkpoint_cost.h"

#include <algorithm>

#include "hw/node.h"
#include "workloads/optimizers/optimizer_step.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

/// A writer's part for each of `node`'s GPUs over their way to the host.
Seconds host_time(const NodeSpec& node, Bytes per_gpu) {
  const BytesPerSecond rate = node.gpu.pcie_bandwidth * node.pcie_efficiency;
  return rate.value() > 0 ? per_gpu * std::int64_t{node.gpus_per_pcie_switch} / rate : Seconds(0);
}

/// Nodes have as many NICs as they have; their writers share them.
Seconds network_time(const NodeSpec& node, Bytes per_gpu, int writers_per_node) {
  const BytesPerSecond rate = node.nic_bandwidth * (node.nic_efficiency * node.nic_count);
  return rate.value() > 0 ? per_gpu * std::int64_t{writers_per_node} / rate : Seconds(0);
}

/// A node's drives together.
Seconds drive_time(const NodeSpec& node, Bytes per_gpu, int writers_per_node) {
  const BytesPerSecond rate = node.nvme_write_bandwidth * static_cast<double>(node.nvme_count);
  return rate.value() > 0 ? per_gpu * std::int64_t{writers_per_node} / rate : Seconds(0);
}

}  // namespace

CheckpointCost checkpoint_cost(const Scenario& scenario, const TimedProgram& timed,
                               BytesPerSecond storage) {
  const StepOptions& step = scenario.step;
  const CategoryBytes state = state_bytes(step, timed.program.parameters);
  CheckpointCost cost;
  cost.bytes = state[MemoryCategory::parameters] + state[MemoryCategory::optimizer];
  cost.writers = step.layout.tensor * step.layout.pipeline * shard_ranks(step);
  cost.bytes_per_gpu = Bytes((cost.bytes.value() + cost.writers - 1) / cost.writers);
  const NodeSpec& node = scenario.cluster.node;
  const int writers_per_node = std::min(cost.writers, node.gpu_count);
  cost.to_host = host_time(node, cost.bytes_per_gpu);
  cost.to_network = network_time(node, cost.bytes_per_gpu, writers_per_node);
  cost.to_drives = drive_time(node, cost.bytes_per_gpu, writers_per_node);
  if (storage.value() > 0) cost.to_storage = cost.bytes / storage;
  cost.slowest = cost.total() == cost.to_storage   ? "storage"
                 : cost.total() == cost.to_network ? "NIC"
                                                   : "PCIe";
  return cost;
}

CheckpointCost with_simulated_write(CheckpointCost cost, Seconds write) {
  constexpr double kShared = 1.02;
  if (write <= std::max({cost.to_host, cost.to_network, cost.to_storage}) * kShared) return cost;
  cost.simulated = write;
  cost.slowest = "links on the way";
  return cost;
}

Seconds restore_time(const Scenario& scenario, const CheckpointCost& cost, BytesPerSecond storage) {
  const int gpus = scenario.step.layout.world_size();
  const NodeSpec& node = scenario.cluster.node;
  const Bytes all = cost.bytes_per_gpu * std::int64_t{gpus};
  const Seconds network = network_time(node, cost.bytes_per_gpu, std::min(gpus, node.gpu_count));
  const Seconds read = storage.value() > 0 ? all / storage : Seconds(0);
  return std::max({host_time(node, cost.bytes_per_gpu), network, read});
}

}  // namespace tessera
