#include "sim/engine/network/platform.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "sim/engine/network/routing_zone.h"

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

std::vector<bool> links_on_any(const std::vector<std::vector<LinkId>>& paths, std::size_t links) {
  std::vector<bool> used(links);
  for (const std::vector<LinkId>& path : paths) {
    for (const LinkId id : path) used[static_cast<std::size_t>(id.index())] = true;
  }
  return used;
}

std::vector<BytesPerSecond> bandwidths_of(std::span<const Link> links) {
  std::vector<BytesPerSecond> bandwidths;
  for (const Link& link : links) bandwidths.push_back(link.bandwidth);
  return bandwidths;
}

std::vector<BytesPerSecond> rates_of(const std::vector<std::vector<LinkId>>& paths,
                                     std::span<const Link> links) {
  std::vector<BytesPerSecond> rates;
  std::vector<double> times_named(links.size());  // by link, on the path at hand
  for (const std::vector<LinkId>& path : paths) {
    for (const LinkId id : path) ++times_named[static_cast<std::size_t>(id.index())];
    BytesPerSecond rate = Platform::kNoLimit;
    for (const LinkId id : path) {
      const auto i = static_cast<std::size_t>(id.index());
      rate = std::min(rate, links[i].bandwidth / times_named[i]);
    }
    for (const LinkId id : path) times_named[static_cast<std::size_t>(id.index())] = 0;
    rates.push_back(rate);
  }
  return rates;
}

}  // namespace

Platform::Platform(std::span<const Link> links, int gpu_count,
                   const std::vector<std::vector<LinkId>>& paths,
                   const std::vector<bool>& has_limit)
    : bandwidths_(bandwidths_of(links)),
      links_(paths),
      rates_(rates_of(paths, links)),
      limits_(paths.size(), nullptr) {
  // SimGrid owns its zones and frees them with the Engine.
  auto* zone = new RoutingZone("cluster", nullptr);
  zone->create_links(links, links_on_any(paths, links.size()));
  gpus_ = create_hosts(*zone, "gpu", gpu_count);
  paths_ = create_hosts(*zone, "path", static_cast<int>(paths.size()));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    zone->set_path(*paths_[i], links_[i]);
    if (i < has_limit.size() && has_limit[i]) limits_[i] = zone->add_limit(*paths_[i], kNoLimit);
  }
  zone->seal();
}

Platform::Platform(const Topology& topology, const std::vector<std::vector<LinkId>>& paths)
    : bandwidths_(bandwidths_of(topology.links())),
      links_(paths),
      rates_(rates_of(paths, topology.links())) {
  auto* zone = new RoutingZone("cluster", &topology);
  zone->create_links(topology.links(), std::vector<bool>(topology.links().size(), true));
  gpus_ = create_hosts(*zone, "gpu", topology.gpu_count());
  paths_ = create_hosts(*zone, "path", static_cast<int>(paths.size()));
  for (std::size_t i = 0; i < paths.size(); ++i) zone->set_path(*paths_[i], links_[i]);
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
