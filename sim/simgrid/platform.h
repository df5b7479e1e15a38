#pragma once

#include <simgrid/s4u.hpp>
#include <vector>

#include "sim/engine/network/link_paths.h"
#include "sim/simgrid/routing_zone.h"

namespace tessera {

/// The cluster as SimGrid sees it: a host per GPU and the topology's links with latency 0 (SimGrid
/// weighs flows by 1/latency, so latencies are waited for outside the network).
/// Besides, one pseudo-host per path: a transfer from that host to itself crosses all links of the
/// path at once. A whole collective is one such flow, and it shares each link max-min fairly.
class Platform {
 public:
  /// SimGrid counts whole bytes: what it calls one is this part of ours, so that what is left of a
  /// flow can be told. A power of two, which changes no bit of a rate.
  static constexpr double kPartsOfByte = 1024;

  /// Builds and seals the platform; start_simgrid() comes first. SimGrid gets only the links that
  /// `paths` name, which have to outlive the platform. Paths with a limit get a link of their own
  /// besides, which bounds every flow over the path and is shared by none.
  Platform(const LinkPaths& paths, int gpu_count);

  /// No paths; a transfer from one GPU's host to another's crosses the links of `route_of`, which
  /// is asked when the transfer starts: no table of routes. SimGrid gets all `links`.
  Platform(std::span<const Link> links, int gpu_count, RouteOf route_of);

  simgrid::s4u::Host& gpu_host(int gpu) const { return *gpus_[static_cast<std::size_t>(gpu)]; }
  simgrid::s4u::Host& path_host(PathId path) const {
    return *paths_[static_cast<std::size_t>(path.index())];
  }
  /// Sends `bytes` over `path`; `data` is the transfer's from before it starts.
  simgrid::s4u::CommPtr send(PathId path, double bytes, void* data) const;
  void set_limit(PathId path, BytesPerSecond rate) const;

 private:
  std::vector<simgrid::s4u::Host*> gpus_;
  std::vector<simgrid::s4u::Host*> paths_;
  std::vector<simgrid::s4u::Link*> limits_;  ///< by path; null without
};

}  // namespace tessera
