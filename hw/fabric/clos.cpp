// Fat trees: leaves, spines, and cores where there are several pods.
#include <algorithm>

#include "hw/fabric/fabric.h"

namespace tessera {
namespace {

std::string indexed(const char* kind, int index) {
  return kind + std::to_string(index);
}

int divided_up(int count, int size) {
  return (count + size - 1) / size;
}

/// Leaves are numbered pod by pod, unit by unit; a unit is `nodes_per_leaf` nodes, with one leaf
/// (clos) or one per NIC of a node (rail_optimized). Spine s of every pod is joined to the cores of
/// plane s.
class Clos : public Fabric {
 public:
  explicit Clos(const ClusterSpec& cluster)
      : spec_(cluster.fabric),
        nics_(nic_bundles(cluster.node)),
        leaves_per_unit_(spec_.kind == FabricKind::rail_optimized ? nics_ : 1),
        units_(divided_up(cluster.node_count, spec_.nodes_per_leaf)),
        units_per_pod_(spec_.units_per_pod > 0 ? std::min(spec_.units_per_pod, units_) : units_),
        pods_(divided_up(units_, units_per_pod_)) {
    const int leaf_nics = spec_.nodes_per_leaf * nics_ / leaves_per_unit_;
    const BytesPerSecond leaf_rate = nic_bundle_rate(cluster.node) * leaf_nics;
    for (int leaf = 0; leaf < units_ * leaves_per_unit_; ++leaf) {
      graph_.add_place(indexed("leaf", leaf));
    }
    if (leaves() > 1) add_spines(leaf_rate / (spec_.spines * spec_.leaf_oversubscription));
    if (pods_ > 1) add_cores();
  }

  int place_of_port(int port) const override { return leaf_of(port); }

 protected:
  std::vector<int> computed_way(int from_port, int to_port, std::uint64_t hash) const override {
    const int from = leaf_of(from_port);
    const int to = leaf_of(to_port);
    const int spine = static_cast<int>(hash % static_cast<std::uint64_t>(spec_.spines));
    const int up = uplink(from, spine);
    const int down = uplink(to, spine) + 1;
    if (pod_of(from) == pod_of(to)) return {up, down};
    const auto cores = static_cast<std::uint64_t>(spec_.cores);
    const int core = static_cast<int>(mixed(hash) % cores);
    return {up, core_link(pod_of(from), spine, core), core_link(pod_of(to), spine, core) + 1, down};
  }

 private:
  int leaves() const { return units_ * leaves_per_unit_; }
  int leaf_of(int port) const {
    const int unit = port / nics_ / spec_.nodes_per_leaf;
    return leaves_per_unit_ == 1 ? unit : unit * leaves_per_unit_ + port % nics_;
  }
  int pod_of(int leaf) const { return leaf / leaves_per_unit_ / units_per_pod_; }
  int spine_place(int pod, int spine) const { return leaves() + pod * spec_.spines + spine; }
  /// The link up from a leaf; the way down follows it.
  int uplink(int leaf, int spine) const { return 2 * (leaf * spec_.spines + spine); }
  int core_link(int pod, int spine, int core) const {
    return 2 * (leaves() * spec_.spines + (pod * spec_.spines + spine) * spec_.cores + core);
  }

  void add_spines(BytesPerSecond rate) {
    for (int i = 0; i < pods_ * spec_.spines; ++i) graph_.add_place(indexed("spine", i));
    for (int leaf = 0; leaf < leaves(); ++leaf) {
      for (int spine = 0; spine < spec_.spines; ++spine) {
        graph_.add_cable(leaf, spine_place(pod_of(leaf), spine), hop(rate));
      }
    }
    spine_rate_ = rate * (units_per_pod_ * leaves_per_unit_);
  }

  void add_cores() {
    const int first = static_cast<int>(graph_.places().size());
    for (int i = 0; i < spec_.spines * spec_.cores; ++i) graph_.add_place(indexed("core", i));
    const BytesPerSecond rate = spine_rate_ / (spec_.cores * spec_.pod_oversubscription);
    for (int pod = 0; pod < pods_; ++pod) {
      for (int spine = 0; spine < spec_.spines; ++spine) {
        for (int core = 0; core < spec_.cores; ++core) {
          graph_.add_cable(spine_place(pod, spine), first + spine * spec_.cores + core, hop(rate));
        }
      }
    }
  }

  Link hop(BytesPerSecond rate) const {
    Link link;
    link.bandwidth = rate;
    link.latency = spec_.link_latency;
    return link;
  }

  FabricSpec spec_;
  int nics_;
  int leaves_per_unit_;
  int units_;
  int units_per_pod_;
  int pods_;
  BytesPerSecond spine_rate_;
};

}  // namespace

std::unique_ptr<Fabric> make_clos(const ClusterSpec& cluster) {
  return std::make_unique<Clos>(cluster);
}

}  // namespace tessera
