#include "sim/longrun/checkpoint_writes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "hw/validation.h"

namespace tessera {
namespace {

void put_first(const ProgramOp& op, RankProgram& stage) {
  for (ProgramOp& other : stage.ops) {
    for (std::int32_t& awaited : other.waits) awaited += awaited >= 0 ? 1 : 0;
  }
  for (PassSpan& pass : stage.passes) {
    ++pass.begin;
    ++pass.end;
  }
  stage.ops.insert(stage.ops.begin(), op);
}

/// Data-parallel ranks some of whose GPUs lie in a node with one that holds a part of a checkpoint:
/// the first copy of what is sharded.
std::vector<bool> sending_replicas(const Program& program, int gpus_per_node) {
  const ParallelLayout& layout = program.layout;
  const int writing = std::max(1, layout.shard / layout.context);
  std::set<int> nodes;
  for (int rank = 0; rank < layout.world_size(); ++rank)
    if (position_of(rank, layout).data < writing)
      nodes.insert(program.gpu_of(rank) / gpus_per_node);
  std::vector<bool> sends(static_cast<std::size_t>(layout.data));
  for (int rank = 0; rank < layout.world_size(); ++rank)
    if (nodes.contains(program.gpu_of(rank) / gpus_per_node))
      sends[static_cast<std::size_t>(position_of(rank, layout).data)] = true;
  return sends;
}

/// Gives the replicas in question programs of their own, behind the others'; the position of the
/// first of these.
std::size_t set_apart(const std::vector<bool>& replicas, Program& program) {
  const std::size_t all = program.stages.size();
  if (std::ranges::find(replicas, false) == replicas.end()) return 0;
  const auto kinds = static_cast<std::int32_t>(all) / program.layout.pipeline;
  program.kind_of_replica.resize(replicas.size());
  for (std::size_t i = 0; i < replicas.size(); ++i)
    program.kind_of_replica[i] += replicas[i] ? kinds : 0;
  program.stages.reserve(2 * all);
  for (std::size_t i = 0; i < all; ++i) program.stages.push_back(program.stages[i]);
  return all;
}

}  // namespace

TimedProgram with_storage(TimedProgram timed, BytesPerSecond bandwidth) {
  if (bandwidth.value() <= 0) return timed;
  ClusterSpec cluster = timed.topology.cluster();
  cluster.storage_bandwidth = bandwidth;
  ClusterSpec with_ports = cluster;
  const double of_node = nic_bundle_rate(cluster.node).value() * nic_bundles(cluster.node);
  with_ports.storage_nodes =
      of_node > 0 ? static_cast<int>(std::ceil(bandwidth.value() / of_node)) : 0;
  with_ports.storage_nodes = std::min(with_ports.storage_nodes, cluster.node_count);
  with_ports.node_count += with_ports.storage_nodes;
  const bool has_room = of_node > 0 && problems_of(with_ports).empty();
  timed.topology = Topology(has_room ? with_ports : cluster);
  return timed;
}

TimedProgram with_checkpoint_writes(TimedProgram timed, Bytes bytes) {
  Program& program = timed.program;
  const auto replicas = sending_replicas(program, timed.topology.cluster().node.gpu_count);
  const std::int64_t gpus =
      std::ranges::count(replicas, true) * program.layout.world_size() / program.layout.data;
  ProgramOp write;
  write.kind = OpKind::copy_out;
  write.stream = StreamKind::host;  // out of the node
  write.bytes = Bytes((bytes.value() + gpus - 1) / gpus);
  for (std::size_t i = set_apart(replicas, program); i < program.stages.size(); ++i)
    put_first(write, program.stages[i]);
  return timed;
}

TimedProgram checkpoint_write_alone(TimedProgram timed, Bytes bytes) {
  for (RankProgram& stage : timed.program.stages) {
    stage.ops.clear();
    stage.passes.clear();
  }
  timed.paces = {};
  return with_checkpoint_writes(std::move(timed), bytes);
}

Bytes written_in_step(const CheckpointCost& cost, Seconds step) {
  const double share = std::min(1.0, step / cost.total());
  return Bytes(std::llround(share * static_cast<double>(cost.bytes.value())));
}

double write_slowdown(const CheckpointCost& cost, Seconds step, Seconds with_write) {
  constexpr double kMost = 10;
  const Seconds longer = std::max(Seconds(0), with_write - step);
  if (cost.total() >= step) return 1 + longer / step;
  // All of it falls into the write, which is a part of the step.
  const double share = longer / cost.total();
  return share < 1 - 1 / kMost ? 1 / (1 - share) : kMost;
}

}  // namespace tessera
