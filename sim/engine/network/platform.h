#pragma once

#include <simgrid/s4u.hpp>
#include <span>
#include <vector>

#include "hw/topology/topology.h"

namespace tessera {

using PathId = Id<struct PathTag>;  ///< a set of links that one flow occupies together

/// The cluster as SimGrid sees it: a host per GPU and the topology's links with latency 0 (SimGrid
/// weighs flows by 1/latency, so latencies are waited for outside the network).
/// Besides, one pseudo-host per path: a transfer from that host to itself crosses all links of the
/// path at once. A whole collective is one such flow, and it shares each link max-min fairly.
class Platform {
 public:
  /// SimGrid counts whole bytes: what it calls one is this part of ours, so that what is left of a
  /// flow can be told. A power of two, which changes no bit of a rate.
  static constexpr double kPartsOfByte = 1024;
  /// Rate of a path's limit until it is set: faster than any link.
  static constexpr BytesPerSecond kNoLimit{1e18};

  /// Builds and seals the platform; start_simgrid() comes first. A link that a path names k times
  /// carries k times the flow's bytes. SimGrid gets only the links that paths name. The paths of
  /// `has_limit` (empty: none) get a link of their own besides, which bounds every flow over the
  /// path and is shared by none.
  Platform(std::span<const Link> links, int gpu_count,
           const std::vector<std::vector<LinkId>>& paths, const std::vector<bool>& has_limit = {});

  /// Besides the paths, a transfer from one GPU's host to another's crosses the links of
  /// `topology.route`, which is asked when the transfer starts: no table of routes. SimGrid gets
  /// all links. The topology has to outlive the platform.
  Platform(const Topology& topology, const std::vector<std::vector<LinkId>>& paths);

  simgrid::s4u::Host& gpu_host(int gpu) const { return *gpus_[static_cast<std::size_t>(gpu)]; }
  simgrid::s4u::Host& path_host(PathId path) const {
    return *paths_[static_cast<std::size_t>(path.index())];
  }
  std::size_t path_count() const { return paths_.size(); }
  std::size_t link_count() const { return bandwidths_.size(); }
  BytesPerSecond bandwidth(LinkId link) const {
    return bandwidths_[static_cast<std::size_t>(link.index())];
  }
  std::span<const LinkId> links_on(PathId path) const {
    return links_[static_cast<std::size_t>(path.index())];
  }
  /// Of a flow with nobody else on its links.
  BytesPerSecond path_rate(PathId path) const {
    return rates_[static_cast<std::size_t>(path.index())];
  }
  /// Sends `bytes` over `path`; `data` is the transfer's from before it starts.
  simgrid::s4u::CommPtr send(PathId path, double bytes, void* data) const;
  void set_limit(PathId path, BytesPerSecond rate) const;

 private:
  std::vector<BytesPerSecond> bandwidths_;  ///< by link
  std::vector<std::vector<LinkId>> links_;  ///< by path
  std::vector<BytesPerSecond> rates_;       ///< by path
  std::vector<simgrid::s4u::Host*> gpus_;
  std::vector<simgrid::s4u::Host*> paths_;
  std::vector<simgrid::s4u::Link*> limits_;  ///< by path; null without
};

}  // namespace tessera
