#include "sim/engine/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tessera {

FlowNetwork::FlowNetwork(const LinkPaths& paths, SimClock& clock)
    : link_paths_(paths), clock_(clock), links_(paths.links().size()), paths_(paths.path_count()) {}

void FlowNetwork::share_on(SharedLinks& shared) {
  shared_ = &shared;
  shared.when_flow_ends([this](std::size_t id) { end_in_simgrid(static_cast<Slot>(id)); });
}

void FlowNetwork::start(PathId path, double bytes, Action on_end) {
  const Slot slot = new_slot();
  Flow& flow = at(slot);
  flow.path = path;
  flow.bytes = std::max(1.0, std::round(bytes));
  flow.on_end = std::move(on_end);
  if (on_flow_) on_flow_(path, flow.bytes);
  if (join(slot)) return run_unhindered(slot);
  if (clock_.ahead()) {
    clock_.in_step([this, slot] { share_links_of(slot); });
  } else {
    share_links_of(slot);
  }
}

FlowNetwork::Slot FlowNetwork::new_slot() {
  if (free_slots_.empty()) {
    flows_.emplace_back();
    return static_cast<Slot>(flows_.size()) - 1;
  }
  const Slot slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

bool FlowNetwork::is_full(LinkId link) {
  constexpr double kRounding = 1e-9;  // of a sum of shares that make a whole
  return use_of(link).needed > link_paths_.bandwidth(link) * (1 + kRounding);
}

bool FlowNetwork::join(Slot slot) {
  const PathId path = at(slot).path;
  bool none_is_full = true;
  for (const LinkId link : link_paths_.links_on(path)) {
    LinkUse& use = use_of(link);
    ++use.flows;
    use.needed += link_paths_.path_rate(path);
    none_is_full = none_is_full && !is_full(link);
  }
  if (!none_is_full) return false;
  for (const LinkId link : link_paths_.links_on(path)) use_of(link).unhindered.push_back(slot);
  return true;
}

void FlowNetwork::leave(Slot slot) {
  const PathId path = at(slot).path;
  for (const LinkId link : link_paths_.links_on(path)) {
    LinkUse& use = use_of(link);
    use.needed -= link_paths_.path_rate(path);
    if (--use.flows == 0) use.needed = {};
  }
}

void FlowNetwork::run_unhindered(Slot slot) {
  Flow& flow = at(slot);
  const Seconds work(flow.bytes / link_paths_.path_rate(flow.path).value());
  flow.unhindered.start(clock_, Seconds(0), work, stretch_on(flow.path), [this, slot] {
    no_longer_unhindered(slot);
    end(slot);
  });
}

void FlowNetwork::no_longer_unhindered(Slot slot) {
  for (const LinkId link : link_paths_.links_on(at(slot).path)) {
    std::vector<Slot>& slots = use_of(link).unhindered;
    *std::ranges::find(slots, slot) = slots.back();
    slots.pop_back();
  }
}

double FlowNetwork::stretch_on(PathId path) {
  return std::max(1.0, link_paths_.path_rate(path) / use_of(path).limit);
}

void FlowNetwork::share_links_of(Slot slot) {
  for (const LinkId link : link_paths_.links_on(at(slot).path)) {
    while (is_full(link) && !use_of(link).unhindered.empty()) {
      const Slot other = use_of(link).unhindered.back();
      no_longer_unhindered(other);
      Flow& flow = at(other);
      flow.bytes = flow.unhindered.stop().value() * link_paths_.path_rate(flow.path).value();
      give_to_simgrid(other);
    }
  }
  give_to_simgrid(slot);
}

void FlowNetwork::give_to_simgrid(Slot slot) {
  Flow& flow = at(slot);
  // SimGrid bounds a flow for good by the slowest link of the date of its start.
  tell_limit(flow.path, LinkPaths::kNoLimit);
  flow.earliest_end = earliest_end(flow.path, flow.bytes);
  clock_.occupy(flow.earliest_end);
  flow.in_simgrid = shared_->send(flow.path, flow.bytes, static_cast<std::size_t>(slot));
  ++use_of(flow.path).flows_in_simgrid;
  tell_limit(flow.path, use_of(flow.path).limit);
}

// Others on its links only slow a flow down. SimGrid ends flows up to a nanosecond early, together
// with what else happens then.
Seconds FlowNetwork::earliest_end(PathId path, double bytes) const {
  constexpr double kRounding = 1e-9;
  const Seconds alone(bytes / link_paths_.path_rate(path).value());
  return clock_.now() + alone * (1 - kRounding) - Seconds(2e-9);
}

void FlowNetwork::limit(PathId path, BytesPerSecond rate) {
  if (std::exchange(use_of(path).limit, rate) == rate) return;
  const std::span<const LinkId> links = link_paths_.links_on(path);
  if (links.empty()) return;
  for (const Slot slot : use_of(links.front()).unhindered) {
    if (at(slot).path == path) at(slot).unhindered.change(stretch_on(path));
  }
  if (use_of(path).flows_in_simgrid == 0) return;
  // SimGrid must not be told while it reports that a flow has ended.
  Action tell = [this, path] { tell_limit(path, use_of(path).limit); };
  if (clock_.ahead()) {
    clock_.in_step(std::move(tell));
  } else {
    clock_.after(Seconds(0), std::move(tell));
  }
}

void FlowNetwork::tell_limit(PathId path, BytesPerSecond rate) {
  if (std::exchange(use_of(path).limit_in_simgrid, rate) == rate) return;
  shared_->set_limit(path, rate);
}

void FlowNetwork::end_in_simgrid(Slot slot) {
  clock_.catch_up();
  clock_.release(at(slot).earliest_end);
  --use_of(at(slot).path).flows_in_simgrid;
  // SimGrid still uses the flow after its callback: the clock lets go of it a moment later.
  clock_.after(Seconds(0), [flow = std::move(at(slot).in_simgrid)] {});
  end(slot);
}

void FlowNetwork::end(Slot slot) {
  leave(slot);
  free_slots_.push_back(slot);
  if (on_flow_) on_flow_(at(slot).path, 0);
  Action on_end = std::exchange(at(slot).on_end, nullptr);
  on_end();
}

}  // namespace tessera
