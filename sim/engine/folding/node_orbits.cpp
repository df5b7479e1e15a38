#include "sim/engine/folding/node_orbits.h"

namespace tessera {
namespace {

bool nodes_are_alike(const TimedProgram& timed) {
  const ClusterSpec& cluster = timed.topology.cluster();
  return cluster.fabric.kind == FabricKind::plain_switch && cluster.faults.empty() &&
         cluster.storage_bandwidth.value() <= 0 && timed.paces.ranks.empty() &&
         timed.paces.kernel_jitter <= 0 && timed.collectives.fidelity != NetworkFidelity::chunk;
}

/// Whole tensor groups in a node, whole nodes in a stage, and no groups of some replicas that nodes
/// could cut differently.
bool nodes_hold_alike_parts(const Program& program, int gpus) {
  const ParallelLayout& layout = program.layout;
  if (layout.order != kDefaultRankOrder || !program.placement.empty()) return false;
  if (!program.kind_of_replica.empty()) return false;
  const int ranks_of_stage = layout.world_size() / layout.pipeline;
  const bool all_replicas_alike = layout.context == 1 && !layout.experts_apart() &&
                                  (layout.shard == 1 || layout.shard == layout.data);
  return gpus % layout.tensor == 0 && ranks_of_stage % gpus == 0 && all_replicas_alike;
}

}  // namespace

NodeOrbits::NodeOrbits(const TimedProgram& timed)
    : gpus_(timed.topology.cluster().node.gpu_count),
      ranks_of_stage_(timed.program.layout.world_size() / timed.program.layout.pipeline),
      links_of_node_(static_cast<int>(timed.topology.node_links(0).links().size())) {
  const bool alike = timed.simulation.fold.data && nodes_are_alike(timed) &&
                     nodes_hold_alike_parts(timed.program, gpus_);
  if (alike) nodes_of_stage_ = ranks_of_stage_ / gpus_;
  for (int rank = 0; rank < timed.program.layout.world_size(); ++rank) {
    if (position(rank) >= 0) planned_.push_back(rank);
  }
}

}  // namespace tessera
