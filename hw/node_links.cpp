#include "hw/node_links.h"

#include <algorithm>

namespace tessera {
namespace {

std::string numbered(const char* kind, int index) {
  return kind + std::to_string(index);
}

void append(std::vector<int>& way, const std::vector<int>& rest) {
  way.insert(way.end(), rest.begin(), rest.end());
}

Link nvlink_link_of(const NodeSpec& node, int lanes) {
  Link link;
  link.technology = LinkTechnology::nvlink;
  link.bandwidth = node.nvlink_bandwidth_per_link * node.nvlink_efficiency * lanes;
  link.latency = node.nvlink_latency;
  link.lanes = lanes;
  return link;
}

Link pcie_link_of(const NodeSpec& node) {
  Link link;
  link.technology = LinkTechnology::pcie;
  link.bandwidth = node.gpu.pcie_bandwidth * node.pcie_efficiency;
  link.latency = node.pcie_latency;
  return link;
}

/// A GPU's way to its host: the coherent link where the GPU has one.
Link host_link_of(const NodeSpec& node) {
  Link link = pcie_link_of(node);
  if (node.gpu.c2c_bandwidth.value() == 0) return link;
  link.technology = LinkTechnology::c2c;
  link.bandwidth = node.gpu.c2c_bandwidth * node.pcie_efficiency;
  return link;
}

Link socket_link_of(const NodeSpec& node) {
  Link link;
  link.technology = LinkTechnology::pcie;
  link.bandwidth = node.socket_bandwidth;
  link.latency = node.pcie_latency;
  return link;
}

Link nic_link_of(const NodeSpec& node) {
  Link link;
  link.technology = LinkTechnology::nic;
  link.bandwidth = node.nic_bandwidth * node.nic_efficiency;
  link.latency = node.nic_latency;
  return link;
}

bool gpus_share_switches(const NodeSpec& node) {
  return node.gpus_per_pcie_switch > 1 && node.gpu.c2c_bandwidth.value() == 0;
}

}  // namespace

NodeLinks::NodeLinks(const NodeSpec& node, Seconds fabric_latency)
    : gpu_count_(node.gpu_count),
      nic_count_(node.nic_count),
      sockets_(node.sockets),
      gpus_per_switch_(gpus_share_switches(node) ? node.gpus_per_pcie_switch : 1),
      bundles_(gpu_count_),
      socket_links_(sockets_) {
  add_nvlinks(node);
  add_host_tree(node);
  add_sockets(node);
  add_nics(node, fabric_latency);
}

int NodeLinks::add(const Link& link) {
  links_.push_back(link);
  return static_cast<int>(links_.size()) - 1;
}

NodeLinks::Cable NodeLinks::add_cable(const std::string& near, const std::string& far, Link link) {
  Cable cable;
  link.name = near + "->" + far;
  cable.up = add(link);
  link.name = far + "->" + near;
  cable.down = add(link);
  return cable;
}

void NodeLinks::add_nvlinks(const NodeSpec& node) {
  for (const GpuPairLink& pair : node.pairs) {
    bundles_.set(pair.first, pair.second,
                 add_cable(numbered("gpu", pair.first), numbered("gpu", pair.second),
                           nvlink_link_of(node, pair.links)));
  }
  if (node.interconnect != GpuInterconnect::nvswitch) return;
  for (int gpu = 0; gpu < gpu_count_; ++gpu) {
    const Link port = nvlink_link_of(node, node.gpu.nvlink_links);
    switch_ports_.push_back(add_cable(numbered("gpu", gpu), "nvswitch", port));
  }
}

void NodeLinks::add_host_tree(const NodeSpec& node) {
  const bool shared = gpus_share_switches(node);
  for (int gpu = 0; gpu < gpu_count_; ++gpu) {
    const std::string far =
        shared ? numbered("pcie_switch", switch_of(gpu)) : numbered("socket", socket_of(gpu));
    host_ports_.push_back(add_cable(numbered("gpu", gpu), far, host_link_of(node)));
  }
  if (!shared) return;
  for (int gpu = 0; gpu < gpu_count_; gpu += gpus_per_switch_) {
    uplinks_.push_back(add_cable(numbered("pcie_switch", switch_of(gpu)),
                                 numbered("socket", socket_of(gpu)), pcie_link_of(node)));
  }
}

void NodeLinks::add_sockets(const NodeSpec& node) {
  for (int low = 0; low < sockets_; ++low) {
    for (int high = low + 1; high < sockets_; ++high) {
      socket_links_.set(
          low, high,
          add_cable(numbered("socket", low), numbered("socket", high), socket_link_of(node)));
    }
  }
}

/// The crossing of the fabric is charged where a message enters it.
void NodeLinks::add_nics(const NodeSpec& node, Seconds fabric_latency) {
  for (int nic = 0; nic < nic_count_; ++nic) {
    const Cable cable = add_cable(numbered("nic", nic), "fabric", nic_link_of(node));
    links_[static_cast<std::size_t>(cable.up)].latency += fabric_latency;
    nics_.push_back(cable);
  }
}

int NodeLinks::relay_between(int from, int to) const {
  int best = kNoLink;
  int best_lanes = 0;
  for (int relay = 0; relay < gpu_count_; ++relay) {
    const int first = bundle(from, relay);
    const int second = bundle(relay, to);
    if (first == kNoLink || second == kNoLink) continue;
    const int lanes = std::min(links_[static_cast<std::size_t>(first)].lanes,
                               links_[static_cast<std::size_t>(second)].lanes);
    if (lanes <= best_lanes) continue;
    best = relay;
    best_lanes = lanes;
  }
  return best;
}

std::vector<int> NodeLinks::gpu_to_gpu(int from, int to) const {
  if (from == to) return {};
  if (!switch_ports_.empty()) {
    return {switch_ports_[static_cast<std::size_t>(from)].up,
            switch_ports_[static_cast<std::size_t>(to)].down};
  }
  if (bundle(from, to) != kNoLink) return {bundle(from, to)};
  const int relay = relay_between(from, to);
  if (relay != kNoLink) return {bundle(from, relay), bundle(relay, to)};
  return over_pcie(from, to);
}

std::vector<int> NodeLinks::over_pcie(int from, int to) const {
  std::vector<int> way = {host_ports_[static_cast<std::size_t>(from)].up};
  append(way, between_switches(from, to));
  way.push_back(host_ports_[static_cast<std::size_t>(to)].down);
  return way;
}

/// From the PCIe switch (or root port) of one GPU to that of another.
std::vector<int> NodeLinks::between_switches(int from, int to) const {
  if (switch_of(from) == switch_of(to)) return {};
  std::vector<int> way;
  if (!uplinks_.empty()) way.push_back(uplinks_[static_cast<std::size_t>(switch_of(from))].up);
  if (socket_of(from) != socket_of(to)) {
    way.push_back(socket_links_.at(socket_of(from), socket_of(to)));
  }
  if (!uplinks_.empty()) way.push_back(uplinks_[static_cast<std::size_t>(switch_of(to))].down);
  return way;
}

std::vector<int> NodeLinks::gpu_to_host(int gpu) const {
  std::vector<int> way = {host_ports_[static_cast<std::size_t>(gpu)].up};
  if (!uplinks_.empty()) way.push_back(uplinks_[static_cast<std::size_t>(switch_of(gpu))].up);
  return way;
}

std::vector<int> NodeLinks::host_to_gpu(int gpu) const {
  std::vector<int> way;
  if (!uplinks_.empty()) way.push_back(uplinks_[static_cast<std::size_t>(switch_of(gpu))].down);
  way.push_back(host_ports_[static_cast<std::size_t>(gpu)].down);
  return way;
}

std::vector<int> NodeLinks::gpu_to_fabric(int gpu) const {
  const int nic = nic_of(gpu);
  std::vector<int> way = {host_ports_[static_cast<std::size_t>(gpu)].up};
  append(way, between_switches(gpu, first_gpu_of_nic(nic)));
  way.push_back(nics_[static_cast<std::size_t>(nic)].up);
  return way;
}

std::vector<int> NodeLinks::fabric_to_gpu(int gpu) const {
  const int nic = nic_of(gpu);
  std::vector<int> way = {nics_[static_cast<std::size_t>(nic)].down};
  append(way, between_switches(first_gpu_of_nic(nic), gpu));
  way.push_back(host_ports_[static_cast<std::size_t>(gpu)].down);
  return way;
}

}  // namespace tessera
