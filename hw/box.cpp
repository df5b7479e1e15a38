#include "hw/box.h"

#include "hw/link_rates.h"
#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr int kMostDirectGpus = 4;  // larger boards have NVSwitches
constexpr int kMostOamGpus = 8;     // each joined to all others (AMD Instinct platforms)

/// Cards have NVLink only through bridges between two of them, which are not assumed. Throws where
/// nobody stated how the GPU sits in its server.
bool has_soldered_nvlink(const GpuSpec& gpu) {
  switch (gpu.form_factor) {
    case FormFactor::sxm:
    case FormFactor::superchip:
    case FormFactor::oam:
      return true;
    case FormFactor::card:
      return false;
    case FormFactor::not_stated:
      break;
  }
  throw InputError(
      {.where = "GPU " + gpu.id,
       .what = "has links of its own, and nothing says how a server joins them",
       .hint = "set form_factor to card, sxm, superchip or oam, or describe the node"});
}

void join_directly(NodeSpec& node) {
  node.interconnect = GpuInterconnect::direct;
  const int links = node.gpu.nvlink_links / (node.gpu_count - 1);
  for (int first = 0; first < node.gpu_count; ++first) {
    for (int second = first + 1; second < node.gpu_count; ++second) {
      node.pairs.push_back({first, second, links});
    }
  }
}

}  // namespace

ClusterSpec box_of(const GpuSpec& gpu, int gpus) {
  ClusterSpec cluster = single_gpu_cluster(gpu);
  NodeSpec& node = cluster.node;
  node.gpu_count = gpus;
  if (gpus > 1 && !gpu.peer_to_peer) node.staged_bandwidth = kStagedCopy;
  if (gpus == 1 || gpu.nvlink_links == 0 || !has_soldered_nvlink(gpu)) return cluster;
  node.nvlink_bandwidth_per_link = gpu.nvlink_bandwidth / static_cast<double>(gpu.nvlink_links);
  node.nvlink_efficiency = nccl_nvlink_share(gpu.nvlink_generation);
  node.nvlink_latency = kNvlinkHop;
  const int most = gpu.form_factor == FormFactor::oam ? kMostOamGpus : kMostDirectGpus;
  if (gpus <= most) {
    join_directly(node);
  } else {
    node.interconnect = GpuInterconnect::nvswitch;
  }
  return cluster;
}

}  // namespace tessera
