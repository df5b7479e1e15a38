#include "sim/plan/memory/host_links.h"

#include <algorithm>
#include <limits>
#include <map>

namespace tessera {
namespace {

class LinkUsers {
 public:
  LinkUsers(const TimedProgram& timed, const std::vector<bool>& copying)
      : topology_(timed.topology) {
    const Program& program = timed.program;
    for (int rank = 0; rank < program.layout.world_size(); ++rank) {
      const auto stage = static_cast<std::size_t>(position_of(rank, program.layout).pipeline);
      if (!copying[stage]) continue;
      for (const LinkId link : topology_.device_to_host(program.gpu_of(rank)).links) ++users_[link];
    }
  }

  remat::HostLink of(int gpu) const {
    const Route down = topology_.device_to_host(gpu);
    const Route up = topology_.host_to_device(gpu);
    double rate = std::numeric_limits<double>::infinity();
    for (const LinkId link : down.links) {
      const auto users = users_.find(link);
      const int count = users == users_.end() ? 1 : users->second;
      rate = std::min(rate, topology_.link(link).bandwidth.value() / count);
    }
    const bool shared = std::ranges::any_of(up.links, [&](LinkId link) {
      return std::ranges::find(down.links, link) != down.links.end();
    });
    return {.bytes_per_ns = rate * 1e-9,
            .latency = static_cast<remat::Nanoseconds>((down.latency + kCopyStart).value() * 1e9),
            .full_duplex = !shared};
  }

 private:
  const Topology& topology_;
  std::map<LinkId, int> users_;
};

}  // namespace

std::vector<remat::HostLink> host_links(const TimedProgram& timed,
                                        const std::vector<bool>& copying) {
  const Program& program = timed.program;
  const LinkUsers users(timed, copying);
  std::vector<remat::HostLink> links(program.stages.size());
  for (int rank = 0; rank < program.layout.world_size(); ++rank) {
    remat::HostLink& link =
        links[static_cast<std::size_t>(position_of(rank, program.layout).pipeline)];
    const remat::HostLink own = users.of(program.gpu_of(rank));
    if (link.bytes_per_ns == 0 || own.bytes_per_ns < link.bytes_per_ns) link = own;
  }
  return links;
}

}  // namespace tessera
