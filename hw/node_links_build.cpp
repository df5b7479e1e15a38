#include <algorithm>
#include <cassert>

#include "hw/node_links.h"

namespace tessera {
namespace {

std::string numbered(const char* kind, int index) {
  return kind + std::to_string(index);
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

/// What bounds a copy to another GPU that goes through the host's memory.
Link staging_link_of(const NodeSpec& node) {
  Link link = pcie_link_of(node);
  link.bandwidth = node.staged_bandwidth;
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
  link.bandwidth = nic_bundle_rate(node);
  link.latency = node.nic_latency;
  link.lanes = node.nic_count / nic_bundles(node);
  return link;
}

Link memory_link_of(const NodeSpec& node) {
  Link link;
  link.technology = LinkTechnology::host_memory;
  link.bandwidth = node.host_memory_bandwidth;
  return link;
}

/// Writing to `drives` drives together; reading differs in the bandwidth.
Link nvme_link_of(const NodeSpec& node, int drives) {
  Link link;
  link.technology = LinkTechnology::nvme;
  link.bandwidth = node.nvme_write_bandwidth * drives;
  link.latency = node.nvme_latency;
  link.lanes = drives;
  return link;
}

bool gpus_share_switches(const NodeSpec& node) {
  return node.gpus_per_pcie_switch > 1 && node.gpu.c2c_bandwidth.value() == 0;
}

}  // namespace

NodeLinks::NodeLinks(const NodeSpec& node, Seconds fabric_latency)
    : gpu_count_(node.gpu_count),
      nic_count_(nic_bundles(node)),
      sockets_(node.sockets),
      gpus_per_switch_(gpus_share_switches(node) ? node.gpus_per_pcie_switch : 1),
      bundles_(gpu_count_),
      socket_links_(sockets_) {
  add_places(node);
  add_nvlinks(node);
  add_host_tree(node);
  add_sockets(node);
  add_nics(node, fabric_latency);
  add_memory_and_drives(node);
  add_staging(node);
  choose_nics();
}

int NodeLinks::add_place(PlaceKind kind, const std::string& name) {
  places_.push_back({kind, name});
  return static_cast<int>(places_.size()) - 1;
}

void NodeLinks::add_places(const NodeSpec& node) {
  const auto add_all = [&](PlaceKind kind, const char* name, int count) {
    for (int i = 0; i < count; ++i) add_place(kind, numbered(name, i));
  };
  add_all(PlaceKind::gpu, "gpu", gpu_count_);
  if (node.interconnect == GpuInterconnect::nvswitch) add_place(PlaceKind::nvswitch, "nvswitch");
  const int switches = (gpu_count_ + gpus_per_switch_ - 1) / gpus_per_switch_;
  if (gpus_per_switch_ > 1) add_all(PlaceKind::pcie_switch, "pcie_switch", switches);
  add_all(PlaceKind::socket, "socket", sockets_);
  add_all(PlaceKind::nic, "nic", nic_count_);
  add_place(PlaceKind::fabric_switch, "fabric");
  if (node.host_memory_bandwidth.value() > 0) add_all(PlaceKind::host_memory, "memory", sockets_);
  if (node.nvme_count > 0) add_all(PlaceKind::nvme, "nvme", sockets_);
  if (node.staged_bandwidth.value() > 0) add_all(PlaceKind::staging_buffer, "staging", gpu_count_);
}

int NodeLinks::place(const std::string& name, int index) const {
  const std::string wanted = index < 0 ? name : name + std::to_string(index);
  const auto found = std::ranges::find(places_, wanted, &Place::name);
  assert(found != places_.end());
  return static_cast<int>(found - places_.begin());
}

int NodeLinks::attachment_of_nic(int nic) const {
  const int gpu = first_gpu_of_nic(nic);
  return uplinks_.empty() ? place("socket", socket_of(gpu)) : place("pcie_switch", switch_of(gpu));
}

int NodeLinks::add(const Link& link) {
  links_.push_back(link);
  return static_cast<int>(links_.size()) - 1;
}

NodeLinks::Cable NodeLinks::add_cable(const std::string& near, const std::string& far, Link link) {
  Cable cable;
  const LinkEnds ends{place(near, -1), place(far, -1)};
  link.name = near + "->" + far;
  cable.up = add(link);
  ends_.push_back(ends);
  link.name = far + "->" + near;
  cable.down = add(link);
  ends_.push_back({ends.to, ends.from});
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
  if (node.socket_bandwidth.value() == 0) return;
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

void NodeLinks::add_memory_and_drives(const NodeSpec& node) {
  for (int socket = 0; socket < sockets_; ++socket) {
    if (node.host_memory_bandwidth.value() == 0) break;
    memories_.push_back(
        add_cable(numbered("socket", socket), numbered("memory", socket), memory_link_of(node)));
  }
  if (node.nvme_count == 0) return;
  for (int socket = 0; socket < sockets_; ++socket) {
    const auto drives_before = [&](int s) { return s * node.nvme_count / sockets_; };
    const int drives = drives_before(socket + 1) - drives_before(socket);
    drives_.emplace_back();
    if (drives == 0) continue;
    drives_.back() =
        add_cable(numbered("socket", socket), numbered("nvme", socket), nvme_link_of(node, drives));
    links_[static_cast<std::size_t>(drives_.back().down)].bandwidth =
        node.nvme_read_bandwidth * drives;
  }
}

/// Buffers in the host's memory, one for each GPU, that copies to other GPUs go through.
void NodeLinks::add_staging(const NodeSpec& node) {
  if (node.staged_bandwidth.value() == 0) return;
  for (int gpu = 0; gpu < gpu_count_; ++gpu) {
    staging_.push_back(
        add_cable(numbered("gpu", gpu), numbered("staging", gpu), staging_link_of(node)));
  }
}

/// The NIC of the GPU's place in order, else the next one that works.
void NodeLinks::choose_nics() {
  const auto works = [&](int nic) {
    const Cable& cable = nics_[static_cast<std::size_t>(nic)];
    return cable.up != kNoLink && cable.down != kNoLink;
  };
  nic_of_gpu_.assign(static_cast<std::size_t>(gpu_count_), 0);
  for (int gpu = 0; gpu < gpu_count_; ++gpu) {
    const int own = gpu * nic_count_ / gpu_count_;
    int tried = 0;
    while (tried < nic_count_ && !works((own + tried) % nic_count_)) ++tried;
    const int nic = tried < nic_count_ ? (own + tried) % nic_count_ : own;
    nic_of_gpu_[static_cast<std::size_t>(gpu)] = nic;
  }
}

}  // namespace tessera
