#include "lab/validate/runs/training_run_cluster.h"

#include <algorithm>
#include <string>

#include "hw/box.h"
#include "hw/link_rates.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

/// Per GPU and direction: four NICs of 100 Gb/s for eight V100 (DGX-1), 200 Gb/s per A100 (DGX
/// A100), 400 Gb/s per H100 (DGX H100) and since.
BytesPerSecond reference_bandwidth(const GpuSpec& gpu) {
  if (gpu.architecture >= Architecture::hopper) return BytesPerSecond(50e9);
  if (gpu.architecture >= Architecture::ampere) return BytesPerSecond(25e9);
  return BytesPerSecond(6.25e9);
}

/// Servers with up to 100 Gb/s per GPU have one NIC for two GPUs (AWS p4d, Jean Zay, DGX-1),
/// faster ones a NIC for each.
void set_nics(BytesPerSecond per_gpu, NodeSpec& node) {
  constexpr BytesPerSecond kSharedUpTo(12.5e9);
  const bool shared = per_gpu <= kSharedUpTo && node.gpu_count % 2 == 0;
  node.nic_count = shared ? node.gpu_count / 2 : node.gpu_count;
  node.nic_bandwidth = per_gpu * (shared ? 2.0 : 1.0);
  node.nic_efficiency = kNicShare;
  node.nic_latency = kInfinibandHop;
}

/// One node with at least `gpus` of `gpu`; exactly as many where `exactly` is asked for.
ClusterSpec node_of(const GpuSpec& gpu, int gpus, bool exactly, const Catalog& catalog) {
  for (const std::string& id : catalog.ids(CatalogKind::clusters)) {
    const ClusterSpec cluster = load_cluster(id, catalog);
    if (cluster.node.gpu.id != gpu.id || cluster.node.gpu_count < gpus) continue;
    if (exactly && cluster.node.gpu_count != gpus) continue;
    ClusterSpec alone{.id = cluster.node.id, .node = cluster.node};
    return alone;
  }
  return box_of(gpu, gpus);
}

}  // namespace

ClusterSpec cluster_of_training_run(const TrainingRun& run, const Catalog& catalog) {
  const GpuSpec gpu = load_gpu(run.gpu, catalog);
  if (run.n_gpus == 1) return single_gpu_cluster(gpu);
  const int nodes = (run.n_gpus + run.gpus_per_node - 1) / run.gpus_per_node;
  if (nodes == 1) return node_of(gpu, run.n_gpus, false, catalog);
  ClusterSpec cluster = node_of(gpu, run.gpus_per_node, true, catalog);
  cluster.node_count = nodes;
  cluster.fabric_latency = kInfinibandHop;
  cluster.measured_all_reduce = run.all_reduce;
  set_nics(run.inter_node.value_or(reference_bandwidth(gpu)), cluster.node);
  return cluster;
}

}  // namespace tessera
