#include "sim/simgrid/routing_zone.h"

#include "sim/simgrid/platform.h"

namespace tessera {

namespace routing = simgrid::kernel::routing;

void RoutingZone::create_links(std::span<const Link> links, const std::vector<bool>& wanted) {
  links_.assign(links.size(), nullptr);
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (!wanted[i]) continue;
    // Names of links need not be unique for us; for SimGrid they must.
    const std::string name = std::to_string(i) + ":" + links[i].name;
    const double rate = links[i].bandwidth.value() * Platform::kPartsOfByte;
    simgrid::s4u::Link* link = get_iface()->create_link(name, rate);
    links_[i] = link->set_latency(0)->get_impl();
  }
}

void RoutingZone::set_path(const simgrid::s4u::Host& host, std::span<const LinkId> links) {
  paths_.emplace(host.get_netpoint()->id(), links);
}

simgrid::s4u::Link* RoutingZone::add_limit(const simgrid::s4u::Host& host, BytesPerSecond rate) {
  simgrid::s4u::Link* link =
      get_iface()->create_link("limit:" + host.get_name(), rate.value() * Platform::kPartsOfByte);
  link->set_latency(0)->set_sharing_policy(simgrid::s4u::Link::SharingPolicy::FATPIPE);
  limits_.emplace(host.get_netpoint()->id(), link->get_impl());
  return link;
}

void RoutingZone::append(routing::Route& route, std::span<const LinkId> links) const {
  route.link_list_.reserve(links.size() + 1);  // its limit may follow
  for (const LinkId id : links) {
    route.link_list_.push_back(links_[static_cast<std::size_t>(id.index())]);
  }
}

void RoutingZone::get_local_route(const routing::NetPoint* from, const routing::NetPoint* to,
                                  routing::Route* route, double*) {
  const auto path = paths_.find(from->id());
  if (path != paths_.end()) {
    append(*route, path->second);
    const auto limit = limits_.find(from->id());
    if (limit != limits_.end()) route->link_list_.push_back(limit->second);
    return;
  }
  if (!route_of_) return;
  append(*route, route_of_(static_cast<int>(from->id()), static_cast<int>(to->id())));
}

}  // namespace tessera
