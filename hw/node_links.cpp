#include "hw/node_links.h"

#include <algorithm>

namespace tessera {
namespace {

void append(std::vector<int>& way, const std::vector<int>& rest) {
  way.insert(way.end(), rest.begin(), rest.end());
}

bool is_whole(const std::vector<int>& way) {
  return std::ranges::find(way, NodeLinks::kNoLink) == way.end();
}

}  // namespace

NodeLinks NodeLinks::without(std::span<const int> missing) const {
  NodeLinks rest = *this;
  for (const int link : missing) {
    rest.bundles_.remove(link);
    rest.socket_links_.remove(link);
    for (auto* cables : {&rest.switch_ports_, &rest.host_ports_, &rest.uplinks_, &rest.nics_,
                         &rest.memories_, &rest.drives_, &rest.staging_}) {
      for (Cable& cable : *cables) {
        if (cable.up == link) cable.up = kNoLink;
        if (cable.down == link) cable.down = kNoLink;
      }
    }
  }
  rest.choose_nics();
  return rest;
}

std::vector<int> NodeLinks::cut_off_gpus() const {
  std::vector<int> cut_off;
  for (int gpu = 0; gpu < gpu_count_; ++gpu) {
    bool reaches = is_whole(gpu_to_host(gpu)) && is_whole(host_to_gpu(gpu));
    for (int other = 0; other < gpu_count_ && reaches; ++other) {
      reaches = is_whole(gpu_to_gpu(gpu, other)) && is_whole(gpu_to_gpu(other, gpu));
    }
    if (nic_count_ > 0)
      reaches = reaches && is_whole(gpu_to_fabric(gpu)) && is_whole(fabric_to_gpu(gpu));
    if (has_nvme()) reaches = reaches && is_whole(gpu_to_nvme(gpu)) && is_whole(nvme_to_gpu(gpu));
    if (!reaches) cut_off.push_back(gpu);
  }
  return cut_off;
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
    const std::vector<int> way = {switch_ports_[static_cast<std::size_t>(from)].up,
                                  switch_ports_[static_cast<std::size_t>(to)].down};
    if (is_whole(way)) return way;
  }
  if (bundle(from, to) != kNoLink) return {bundle(from, to)};
  const int relay = relay_between(from, to);
  if (relay != kNoLink) return {bundle(from, relay), bundle(relay, to)};
  return over_pcie(from, to);
}

std::vector<int> NodeLinks::over_pcie(int from, int to) const {
  std::vector<int> way;
  if (!staging_.empty()) way.push_back(staging_[static_cast<std::size_t>(from)].up);
  way.push_back(host_ports_[static_cast<std::size_t>(from)].up);
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

std::vector<int> NodeLinks::gpu_to_socket(int gpu) const {
  std::vector<int> way = {host_ports_[static_cast<std::size_t>(gpu)].up};
  if (!uplinks_.empty()) way.push_back(uplinks_[static_cast<std::size_t>(switch_of(gpu))].up);
  return way;
}

std::vector<int> NodeLinks::socket_to_gpu(int gpu) const {
  std::vector<int> way;
  if (!uplinks_.empty()) way.push_back(uplinks_[static_cast<std::size_t>(switch_of(gpu))].down);
  way.push_back(host_ports_[static_cast<std::size_t>(gpu)].down);
  return way;
}

std::vector<int> NodeLinks::gpu_to_host(int gpu) const {
  std::vector<int> way = gpu_to_socket(gpu);
  if (!memories_.empty()) way.push_back(memories_[static_cast<std::size_t>(socket_of(gpu))].up);
  return way;
}

std::vector<int> NodeLinks::host_to_gpu(int gpu) const {
  std::vector<int> way;
  if (!memories_.empty()) way.push_back(memories_[static_cast<std::size_t>(socket_of(gpu))].down);
  append(way, socket_to_gpu(gpu));
  return way;
}

/// The socket itself where it has drives, else the next one that does.
int NodeLinks::socket_with_drives(int socket) const {
  for (int step = 0; step < sockets_; ++step) {
    const int candidate = (socket + step) % sockets_;
    const Cable& drives = drives_[static_cast<std::size_t>(candidate)];
    if (drives.up != kNoLink && drives.down != kNoLink) return candidate;
  }
  return socket;
}

std::vector<int> NodeLinks::gpu_to_nvme(int gpu) const {
  const int target = socket_with_drives(socket_of(gpu));
  std::vector<int> way = gpu_to_socket(gpu);
  if (target != socket_of(gpu)) way.push_back(socket_links_.at(socket_of(gpu), target));
  way.push_back(drives_[static_cast<std::size_t>(target)].up);
  return way;
}

std::vector<int> NodeLinks::nvme_to_gpu(int gpu) const {
  const int source = socket_with_drives(socket_of(gpu));
  std::vector<int> way = {drives_[static_cast<std::size_t>(source)].down};
  if (source != socket_of(gpu)) way.push_back(socket_links_.at(source, socket_of(gpu)));
  append(way, socket_to_gpu(gpu));
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
