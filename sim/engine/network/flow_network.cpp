#include "sim/engine/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace tessera {

FlowNetwork::FlowNetwork(const Platform& platform, SimClock& clock)
    : platform_(platform), clock_(clock), limits_(platform.path_count(), Platform::kNoLimit) {
  simgrid::s4u::Activity::on_completion_cb([this](const simgrid::s4u::Activity& activity) {
    const auto* comm = dynamic_cast<const simgrid::s4u::Comm*>(&activity);
    if (comm == nullptr || comm->get_data<void>() == nullptr) return;
    finish(reinterpret_cast<std::uintptr_t>(comm->get_data<void>()) - 1);
  });
}

void FlowNetwork::start(PathId path, double bytes, Action on_end) {
  if (!clock_.ahead()) return flow(path, bytes, std::move(on_end));
  clock_.in_step([this, path, bytes, on_end = std::move(on_end)]() mutable {
    flow(path, bytes, std::move(on_end));
  });
}

void FlowNetwork::flow(PathId path, double bytes, Action on_end) {
  if (free_slots_.empty()) {
    free_slots_.push_back(flows_.size());
    flows_.emplace_back();
  }
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();

  // SimGrid bounds a flow for good by the slowest link of the date of its start.
  const BytesPerSecond limit = limits_[static_cast<std::size_t>(path.index())];
  const bool is_limited = limit != Platform::kNoLimit;
  if (is_limited) set_limit(path, Platform::kNoLimit);
  simgrid::s4u::Host& host = platform_.path_host(path);
  // SimGrid never starts an empty transfer that nobody waits for, hence the one byte.
  const auto payload = static_cast<std::uint64_t>(std::max(1.0, std::round(bytes)));
  const simgrid::s4u::CommPtr comm = simgrid::s4u::Comm::sendto_init();
  comm->set_data(reinterpret_cast<void*>(slot + 1));
  flows_[slot] = {comm, earliest_end(path, static_cast<double>(payload)), std::move(on_end), path};
  if (on_flow_) on_flow_(path, static_cast<double>(payload));
  clock_.occupy(flows_[slot].earliest_end);
  comm->set_payload_size(payload)->set_source(&host)->set_destination(&host);  // starts it
  if (is_limited) set_limit(path, limit);
}

// Others on its links only slow a flow down. SimGrid ends flows up to a nanosecond early, together
// with what else happens then.
Seconds FlowNetwork::earliest_end(PathId path, double bytes) const {
  constexpr double kRounding = 1e-9;
  const Seconds alone(bytes / platform_.path_rate(path).value());
  return clock_.now() + alone * (1 - kRounding) - Seconds(2e-9);
}

void FlowNetwork::limit(PathId path, BytesPerSecond rate) {
  BytesPerSecond& limit = limits_[static_cast<std::size_t>(path.index())];
  if (limit == rate) return;
  limit = rate;
  // SimGrid must not be told while it reports that a flow has ended.
  Action tell = [this, path] { set_limit(path, limits_[static_cast<std::size_t>(path.index())]); };
  if (clock_.ahead()) {
    clock_.in_step(std::move(tell));
  } else {
    clock_.after(Seconds(0), std::move(tell));
  }
}

void FlowNetwork::set_limit(PathId path, BytesPerSecond rate) {
  platform_.path_limit(path).set_bandwidth(rate.value());
}

void FlowNetwork::finish(std::size_t slot) {
  clock_.catch_up();
  clock_.release(flows_[slot].earliest_end);
  if (on_flow_) on_flow_(flows_[slot].path, 0);
  Action on_end = std::exchange(flows_[slot].on_end, nullptr);
  // SimGrid still uses the Comm after this callback: the clock lets go of it a moment later.
  clock_.after(Seconds(0), [this, slot] {
    flows_[slot].comm.reset();
    free_slots_.push_back(slot);
  });
  on_end();
}

}  // namespace tessera
