#include "lab/validate/runs/training_run_cluster.h"

#include <iterator>
#include <optional>

#include "hw/box.h"
#include "hw/link_rates.h"
#include "hw/units/text.h"
#include "lab/validate/row_scenario.h"
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
void add_nics(BytesPerSecond per_gpu, int gpus, std::vector<std::string>& settings) {
  constexpr BytesPerSecond kSharedUpTo(12.5e9);
  const bool shared = per_gpu <= kSharedUpTo && gpus % 2 == 0;
  const BytesPerSecond rate = per_gpu * (shared ? 2.0 : 1.0);
  settings.push_back("cluster.node.nic_count=" + std::to_string(shared ? gpus / 2 : gpus));
  settings.push_back("cluster.node.nic_bandwidth=" + to_text(rate));
  settings.push_back("cluster.node.nic_efficiency=" + exact_text(kNicShare));
  settings.push_back("cluster.node.nic_latency=" + to_text(kInfinibandHop));
}

/// How far a node is from what a row with no word of it means, 0: not at all. Cards with a PCIe
/// edge have a bridge to one neighbour, or a host without peer-to-peer, only where somebody says
/// so.
int oddity(const NodeSpec& node) {
  const bool bridges = !node.pairs.empty() && 2 * std::ssize(node.pairs) <= node.gpu_count;
  if (bridges) return 2;
  return node.staged_bandwidth.value() > 0 ? 1 : 0;
}

/// The plainest node of the catalog with at least `gpus` of `gpu`, the first of such; exactly as
/// many where `exactly` is asked for.
std::optional<NodeSpec> catalog_node(const GpuSpec& gpu, int gpus, bool exactly,
                                     const Catalog& catalog) {
  std::optional<NodeSpec> found;
  for (const std::string& id : catalog.ids(CatalogKind::clusters)) {
    if (found && oddity(*found) == 0) break;  // reading all clusters takes time
    const NodeSpec node = load_cluster(id, catalog).node;
    if (node.gpu.id != gpu.id || node.gpu_count < gpus) continue;
    if (exactly && node.gpu_count != gpus) continue;
    if (!found || oddity(node) < oddity(*found)) found = node;
  }
  return found;
}

RunCluster node_of(const GpuSpec& gpu, const std::string& name, int gpus, bool exactly,
                   const Catalog& catalog) {
  if (const auto node = catalog_node(gpu, gpus, exactly, catalog))
    return {{"cluster.id=" + node->id, "cluster.node=" + node->id}, *node};
  const NodeSpec box = box_of(gpu, gpus).node;
  return {settings_of_node(box, name), box};
}

}  // namespace

RunCluster cluster_of_training_run(const TrainingRun& run, const Catalog& catalog) {
  const GpuSpec gpu = load_gpu(run.gpu, catalog);
  const std::string name = catalog.completed(CatalogKind::gpus, run.gpu);
  if (run.n_gpus == 1) {
    const NodeSpec node = single_gpu_cluster(gpu).node;
    return {settings_of_node(node, name), node};
  }
  const int nodes = (run.n_gpus + run.gpus_per_node - 1) / run.gpus_per_node;
  if (nodes == 1) return node_of(gpu, name, run.n_gpus, false, catalog);
  RunCluster cluster = node_of(gpu, name, run.gpus_per_node, true, catalog);
  cluster.settings.push_back("cluster.node_count=" + std::to_string(nodes));
  cluster.settings.push_back("cluster.fabric_latency=" + to_text(kInfinibandHop));
  if (run.all_reduce.value() > 0)
    cluster.settings.push_back("cluster.measured_all_reduce=" + to_text(run.all_reduce));
  if (run.all_gather.value() > 0)
    cluster.settings.push_back("cluster.measured_all_gather=" + to_text(run.all_gather));
  add_nics(run.inter_node.value_or(reference_bandwidth(gpu)), cluster.node.gpu_count,
           cluster.settings);
  return cluster;
}

}  // namespace tessera
