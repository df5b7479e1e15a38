#include "sim/engine/platform.h"

#include <map>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <string>
#include <unordered_map>
#include <utility>

namespace tessera {
namespace {

namespace routing = simgrid::kernel::routing;
using LinkList = std::vector<simgrid::kernel::resource::StandardLinkImpl*>;

// SimGrid's own zones route between pairs of hosts; here the route belongs to the pseudo-host.
class PathZone : public routing::NetZoneImpl {
 public:
  explicit PathZone(const std::string& name) : NetZoneImpl(name) {}

  void set_path(const simgrid::s4u::Host& host, LinkList links) {
    paths_.emplace(host.get_netpoint()->id(), std::move(links));
  }

  void get_local_route(const routing::NetPoint* from, const routing::NetPoint*,
                       routing::Route* route, double*) override {
    const LinkList& links = paths_.at(from->id());
    route->link_list_.insert(route->link_list_.end(), links.begin(), links.end());
  }

  void get_graph(const s_xbt_graph_t*, std::map<std::string, xbt_node_t, std::less<>>*,
                 std::map<std::string, xbt_edge_t, std::less<>>*) override {}

 private:
  std::unordered_map<unsigned long, LinkList> paths_;
};

LinkList create_links(PathZone& zone, std::span<const Link> links) {
  LinkList created;
  for (const Link& link : links) {
    // Names of links need not be unique for us; for SimGrid they must.
    const std::string name = std::to_string(created.size()) + ":" + link.name;
    created.push_back(
        zone.get_iface()->create_link(name, link.bandwidth.value())->set_latency(0)->get_impl());
  }
  return created;
}

LinkList select(const LinkList& all, const std::vector<LinkId>& ids) {
  LinkList selected;
  for (const LinkId id : ids) selected.push_back(all[static_cast<std::size_t>(id.index())]);
  return selected;
}

}  // namespace

Platform::Platform(std::span<const Link> links, int gpu_count,
                   const std::vector<std::vector<LinkId>>& paths) {
  // SimGrid owns its zones and frees them with the Engine.
  auto* zone = new PathZone("cluster");
  simgrid::s4u::NetZone* interface = zone->get_iface();
  const LinkList created = create_links(*zone, links);
  constexpr double kFlopsPerSecond = 1;  // SimGrid wants a speed; kernels run on our own clock
  for (int gpu = 0; gpu < gpu_count; ++gpu) {
    gpus_.push_back(interface->create_host("gpu" + std::to_string(gpu), kFlopsPerSecond));
  }
  for (const std::vector<LinkId>& path : paths) {
    const std::string name = "path" + std::to_string(paths_.size());
    paths_.push_back(interface->create_host(name, kFlopsPerSecond));
    zone->set_path(*paths_.back(), select(created, path));
  }
  zone->seal();
}

}  // namespace tessera
