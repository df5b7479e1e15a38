#include "sim/simgrid/platform.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "sim/simgrid/routing_zone.h"

namespace tessera {
namespace {

constexpr double kFlopsPerSecond = 1;  // SimGrid wants a speed; kernels run on our own clock

std::vector<simgrid::s4u::Host*> create_hosts(RoutingZone& zone, const char* kind, int count) {
  std::vector<simgrid::s4u::Host*> hosts;
  hosts.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    hosts.push_back(zone.get_iface()->create_host(kind + std::to_string(i), kFlopsPerSecond));
  }
  return hosts;
}

std::vector<bool> links_on_any(const LinkPaths& paths) {
  std::vector<bool> used(paths.links().size());
  for (std::size_t i = 0; i < paths.path_count(); ++i) {
    for (const LinkId id : paths.links_on(PathId(static_cast<int>(i))))
      used[static_cast<std::size_t>(id.index())] = true;
  }
  return used;
}

}  // namespace

Platform::Platform(const LinkPaths& paths, int gpu_count) : limits_(paths.path_count(), nullptr) {
  // SimGrid owns its zones and frees them with the Engine.
  auto* zone = new RoutingZone("cluster", nullptr);
  zone->create_links(paths.links(), links_on_any(paths));
  gpus_ = create_hosts(*zone, "gpu", gpu_count);
  paths_ = create_hosts(*zone, "path", static_cast<int>(paths.path_count()));
  for (std::size_t i = 0; i < paths.path_count(); ++i) {
    const PathId path(static_cast<int>(i));
    zone->set_path(*paths_[i], paths.links_on(path));
    if (paths.has_limit(path)) limits_[i] = zone->add_limit(*paths_[i], LinkPaths::kNoLimit);
  }
  zone->seal();
}

Platform::Platform(std::span<const Link> links, int gpu_count, RouteOf route_of) {
  auto* zone = new RoutingZone("cluster", std::move(route_of));
  zone->create_links(links, std::vector<bool>(links.size(), true));
  gpus_ = create_hosts(*zone, "gpu", gpu_count);
  zone->seal();
}

simgrid::s4u::CommPtr Platform::send(PathId path, double bytes, void* data) const {
  simgrid::s4u::CommPtr comm = simgrid::s4u::Comm::sendto_init();
  comm->set_data(data);
  // SimGrid never starts an empty transfer that nobody waits for.
  const double parts = std::max(1.0, std::round(bytes * kPartsOfByte));
  comm->set_payload_size(static_cast<std::uint64_t>(parts))->set_source(&path_host(path));
  comm->set_destination(&path_host(path));  // starts it
  return comm;
}

void Platform::set_limit(PathId path, BytesPerSecond rate) const {
  limits_[static_cast<std::size_t>(path.index())]->set_bandwidth(rate.value() * kPartsOfByte);
}

}  // namespace tessera
