// Reads a SimGrid platform: hosts and routers, links, and routes as lists of links between them.
// Every link becomes two switches with a one-way cable from its entry to its exit, and a route the
// cables between exits and entries: links are shared exactly as SimGrid shares them.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "app/import/imported.h"
#include "app/import/node_shape.h"
#include "app/import/simgrid_radical.h"
#include "app/import/simgrid_units.h"
#include "app/import/xml_file.h"
#include "hw/topology/topology.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

constexpr std::size_t kMostHosts = 2000;
constexpr std::size_t kMostCables = 200'000;

/// A direction of a link: what routes are made of.
struct Direction {
  std::string entry;
  std::string exit;
  BytesPerSecond bandwidth;
};

/// A link as the file names it.
struct FoundLink {
  Direction up;
  Direction down;  ///< the same as `up` where the directions share the bandwidth
};

bool is_zone(const std::string& name) {
  return name == "zone" || name == "AS";
}

/// Letters, digits, dots, dashes and underscores; the rest would mean something in names of links.
std::string plain_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += letter || c == '.' || c == '_' || c == '-' ? c : '_';
  }
  return name;
}

class PlatformReader {
 public:
  PlatformReader(const XmlFile& file, Imported& imported)
      : file_(file), fabric_(imported.cluster.fabric), ignored_(imported.ignored) {
    read_zone(file.root());
    read_routes(file.root());
    if (hosts_.empty()) refuse(file.where(file.root()), "holds no host", "give a SimGrid platform");
    if (fabric_.links.empty()) refuse(file.where(file.root()), "holds no link", "list some");
    for (const std::string& kind : odd_policies_) {
      ignored_.push_back("sharing_policy " + kind + ": such links are shared like the others");
    }
  }

  int host_count() const { return static_cast<int>(hosts_.size()); }
  const std::vector<std::string>& host_names() const { return host_names_; }
  BytesPerSecond fastest() const { return fastest_; }

 private:
  std::string attribute(const pugi::xml_node& node, const char* name) const {
    const pugi::xml_attribute found = node.attribute(name);
    if (!found || *found.value() == 0) {
      refuse(file_.where(node), std::string(node.name()) + " has no " + name, "give it one");
    }
    return found.value();
  }

  BytesPerSecond bandwidth(const pugi::xml_node& node, const char* name) const {
    const std::string text = attribute(node, name);
    const auto value = simgrid_bandwidth(text);
    if (!value) {
      refuse(file_.where(node), std::string(name) + " = \"" + text + "\" is no bandwidth",
             "write it like 125MBps or 1Gbps");
    }
    return *value;
  }

  Seconds time(const pugi::xml_node& node, const char* name) const {
    const std::string text = node.attribute(name).value();
    if (text.empty()) return Seconds(0);
    const auto value = simgrid_time(text);
    if (!value) {
      refuse(file_.where(node), std::string(name) + " = \"" + text + "\" is no time",
             "write it like 50us");
    }
    return *value;
  }

  /// A switch with a name of its own.
  std::string add_switch(const std::string& wanted) {
    std::string name = plain_name(wanted);
    for (int i = 2; !switch_names_.insert(name).second; ++i) {
      name = plain_name(wanted) + "_" + std::to_string(i);
    }
    fabric_.switches.push_back(name);
    return name;
  }

  void add_cable(const FabricCable& cable, const pugi::xml_node& node) {
    if (fabric_.links.size() >= kMostCables) {
      refuse(file_.where(node), "needs more than " + std::to_string(kMostCables) + " cables",
             "describe the fabric by its kind: clos, dragonfly, torus");
    }
    fabric_.links.push_back(cable);
  }

  void add_place(const std::string& id, const pugi::xml_node& node) {
    const bool is_new = places_.try_emplace(id, "").second;
    if (!is_new) refuse(file_.where(node), "\"" + id + "\" occurs twice", "ids are unique");
    places_[id] = add_switch(id);
  }

  void add_host(const std::string& id, const pugi::xml_node& node) {
    if (hosts_.size() >= kMostHosts) {
      refuse(file_.where(node), "has more than " + std::to_string(kMostHosts) + " hosts",
             "describe the cluster by the kind of its fabric");
    }
    add_place(id, node);
    const std::string nic = "node" + std::to_string(hosts_.size()) + ".nic0";
    hosts_.push_back(nic);
    host_names_.push_back(id);
  }

  Direction add_direction(const std::string& id, BytesPerSecond rate, Seconds latency,
                          const pugi::xml_node& node) {
    const Direction direction{add_switch(id + ".in"), add_switch(id + ".out"), rate};
    add_cable({direction.entry, direction.exit, rate, latency, true}, node);
    fastest_ = std::max(fastest_, rate);
    return direction;
  }

  void add_link(const std::string& id, BytesPerSecond rate, Seconds latency,
                const std::string& policy, const pugi::xml_node& node) {
    if (links_.contains(id))
      refuse(file_.where(node), "link \"" + id + "\" occurs twice", "ids are unique");
    const bool split = policy == "SPLITDUPLEX" || policy == "FULLDUPLEX";
    if (!split && policy != "SHARED" && !policy.empty()) odd_policies_.insert(policy);
    FoundLink link;
    link.up = add_direction(split ? id + "_UP" : id, rate, latency, node);
    link.down = split ? add_direction(id + "_DOWN", rate, latency, node) : link.up;
    links_.emplace(id, link);
  }

  void read_zone(const pugi::xml_node& zone) {
    for (const pugi::xml_node& node : zone.children()) {
      const std::string kind = node.name();
      if (is_zone(kind)) read_zone(node);
      if (kind == "host") add_host(attribute(node, "id"), node);
      if (kind == "router") add_place(attribute(node, "id"), node);
      if (kind == "link") {
        add_link(attribute(node, "id"), bandwidth(node, "bandwidth"), time(node, "latency"),
                 node.attribute("sharing_policy").value(), node);
      }
      if (kind == "cluster") read_cluster(node);
    }
  }

  void read_routes(const pugi::xml_node& zone) {
    for (const pugi::xml_node& node : zone.children()) {
      const std::string kind = node.name();
      if (is_zone(kind)) read_routes(node);
      if (kind == "route") read_route(node, "src", "dst");
      if (kind == "zoneRoute") read_route(node, "gw_src", "gw_dst");
      if (kind == "ASroute") read_route(node, "gw_src", "gw_dst");
    }
  }

  const FoundLink& link(const std::string& id, const pugi::xml_node& node) const {
    const auto found = links_.find(id);
    if (found == links_.end()) {
      refuse(file_.where(node), "there is no link \"" + id + "\"", "define it before");
    }
    return found->second;
  }

  const std::string& place(const pugi::xml_node& route, const char* end) const {
    const std::string id = attribute(route, end);
    const auto found = places_.find(id);
    if (found == places_.end()) {
      refuse(file_.where(route), "there is no host or router \"" + id + "\"", "define it before");
    }
    return found->second;
  }

  Direction direction_of(const pugi::xml_node& step, bool back) const {
    const std::string id = attribute(step, "id");
    const std::string wanted = step.attribute("direction").value();
    const bool down = (wanted == "DOWN") != back;
    const FoundLink& found = link(id, step);
    return down ? found.down : found.up;
  }

  void read_route(const pugi::xml_node& route, const char* from_key, const char* to_key) {
    const std::string from = place(route, from_key);
    const std::string to = place(route, to_key);
    std::vector<pugi::xml_node> steps;
    for (const pugi::xml_node& step : route.children()) {
      const std::string kind = step.name();
      if (kind == "link_ctn" || kind == "link:ctn") steps.push_back(step);
    }
    if (from == to) return;
    const std::string symmetrical = route.attribute("symmetrical").value();
    join(from, to, directions(steps, false), route);
    if (symmetrical == "NO" || symmetrical == "no") return;
    std::ranges::reverse(steps);
    join(to, from, directions(steps, true), route);
  }

  std::vector<Direction> directions(const std::vector<pugi::xml_node>& steps, bool back) const {
    std::vector<Direction> list;
    for (const pugi::xml_node& step : steps) list.push_back(direction_of(step, back));
    return list;
  }

  /// Cables that carry a route from one place over the links to another. They are never narrower
  /// than a link beside them.
  void join(const std::string& from, const std::string& to, const std::vector<Direction>& links,
            const pugi::xml_node& node) {
    if (links.empty()) refuse(file_.where(node), "the route has no link", "list at least one");
    connect(from, links.front().entry, links.front().bandwidth, node);
    for (std::size_t i = 0; i + 1 < links.size(); ++i) {
      connect(links[i].exit, links[i + 1].entry,
              std::max(links[i].bandwidth, links[i + 1].bandwidth), node);
    }
    connect(links.back().exit, to, links.back().bandwidth, node);
  }

  void connect(const std::string& from, const std::string& to, BytesPerSecond rate,
               const pugi::xml_node& node) {
    if (from == to || !joined_.insert({from, to}).second) return;
    add_cable({from, to, rate, Seconds(0), true}, node);
  }

  void refuse_topology(const pugi::xml_node& node) {
    const std::string topology = node.attribute("topology").value();
    if (!topology.empty() && topology != "FLAT") {
      refuse(file_.where(node),
             "cluster topology = \"" + topology + "\" has no links of its own in the file",
             "describe it by fabric.kind: clos, torus or dragonfly");
    }
  }

  std::vector<int> numbers_of_hosts(const pugi::xml_node& node) {
    const auto numbers = simgrid_radical(attribute(node, "radical"), kMostHosts);
    if (!numbers) {
      refuse(file_.where(node),
             "radical = \"" + attribute(node, "radical") + "\" is no list of numbers",
             "write it like 0-7,12; up to " + std::to_string(kMostHosts) + " hosts");
    }
    return *numbers;
  }

  /// A link of its own between `host` and what all hosts of a cluster share.
  void join_host(const std::string& host, const std::string& own, const pugi::xml_node& node,
                 const std::string& shared_entry, const std::string& shared_exit) {
    add_host(host, node);
    const std::string policy = node.attribute("sharing_policy").value();
    add_link(own, bandwidth(node, "bw"), time(node, "lat"), policy.empty() ? "SPLITDUPLEX" : policy,
             node);
    const FoundLink& link = links_.at(own);
    connect(places_[host], link.up.entry, link.up.bandwidth, node);
    connect(link.up.exit, shared_entry, link.up.bandwidth, node);
    connect(shared_exit, link.down.entry, link.down.bandwidth, node);
    connect(link.down.exit, places_[host], link.down.bandwidth, node);
  }

  /// Hosts `prefix`i`suffix`, each with a link of its own to a backbone or router.
  void read_cluster(const pugi::xml_node& node) {
    refuse_topology(node);
    const std::string id = attribute(node, "id");
    const std::string prefix = node.attribute("prefix").value();
    const std::string suffix = node.attribute("suffix").value();
    const std::vector<int> numbers = numbers_of_hosts(node);
    const std::string given = node.attribute("router_id").value();
    const std::string router = given.empty() ? prefix + id + "_router" + suffix : given;
    add_place(router, node);
    const bool has_backbone = node.attribute("bb_bw");
    Direction backbone;
    if (has_backbone) {
      backbone =
          add_direction(id + "_backbone", bandwidth(node, "bb_bw"), time(node, "bb_lat"), node);
      connect(backbone.exit, places_[router], backbone.bandwidth, node);
      connect(places_[router], backbone.entry, backbone.bandwidth, node);
    }
    for (const int number : numbers)
      join_host(prefix + std::to_string(number) + suffix, id + "_link_" + std::to_string(number),
                node, has_backbone ? backbone.entry : places_[router],
                has_backbone ? backbone.exit : places_[router]);
  }

 public:
  /// NICs are joined to the switches of their hosts last, when the fastest link is known.
  void plug_in_nics() {
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      fabric_.links.push_back({hosts_[i], places_.at(host_names_[i]), fastest_, Seconds(0), false});
    }
  }

 private:
  const XmlFile& file_;
  FabricSpec& fabric_;
  std::vector<std::string>& ignored_;
  std::map<std::string, std::string> places_;  ///< host or router -> its switch
  std::map<std::string, FoundLink> links_;
  std::vector<std::string> hosts_;  ///< their NICs
  std::vector<std::string> host_names_;
  std::set<std::string> switch_names_;
  std::set<std::pair<std::string, std::string>> joined_;
  std::set<std::string> odd_policies_;
  BytesPerSecond fastest_;
};

/// Elements and attributes that are read.
Vocabulary known_words() {
  return Vocabulary({{"platform", {"version"}},
                     {"zone", {"id"}},
                     {"AS", {"id"}},
                     {"host", {"id"}},
                     {"router", {"id"}},
                     {"link", {"id", "bandwidth", "latency", "sharing_policy"}},
                     {"route", {"src", "dst", "symmetrical"}},
                     {"zoneRoute", {"src", "dst", "gw_src", "gw_dst", "symmetrical"}},
                     {"ASroute", {"src", "dst", "gw_src", "gw_dst", "symmetrical"}},
                     {"link_ctn", {"id", "direction"}},
                     {"link:ctn", {"id", "direction"}},
                     {"cluster",
                      {"id", "prefix", "suffix", "radical", "bw", "lat", "bb_bw", "bb_lat",
                       "sharing_policy", "router_id", "topology"}}});
}

}  // namespace

Imported import_simgrid_platform(const std::string& text, const std::string& name,
                                 const ImportOptions& options, const GpuFinder& find_gpu) {
  const XmlFile file(text, name, "platform");
  if (options.gpu.empty()) {
    refuse(name, "hosts have a speed, but no GPU", "name the GPU of each host with --gpu");
  }
  Imported imported;
  NodeSpec& node = imported.cluster.node;
  imported.gpu = options.gpu;
  imported.cluster.id = "imported-simgrid";
  imported.cluster.fabric.kind = FabricKind::graph;
  PlatformReader reader(file, imported);
  reader.plug_in_nics();
  imported.cluster.node_count = reader.host_count();
  node.id = "imported-host";
  node.gpu = find_gpu(options.gpu);
  node.gpu_count = node.nic_count = 1;
  node.nic_bandwidth = reader.fastest();
  node.pcie_efficiency = 1;
  imported.assumed.push_back("one " + node.gpu.id +
                             " per host, behind its PCIe link, with a NIC of " +
                             to_text(reader.fastest()) + ", the fastest link");
  imported.assumed.push_back(
      "routes have the fewest links; SimGrid's may be others where a file "
      "lists detours");
  Vocabulary vocabulary = known_words();
  vocabulary.look_at(file.root());
  for (const std::string& line : vocabulary.unused()) imported.ignored.push_back(line);
  return checked(std::move(imported), name);
}

}  // namespace tessera
