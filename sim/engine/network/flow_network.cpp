#include "sim/engine/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace tessera {

FlowNetwork::FlowNetwork(const Platform& platform, SimClock& clock)
    : platform_(platform),
      clock_(clock),
      uses_(platform.link_count()),
      limits_(platform.path_count()) {
  simgrid::s4u::Activity::on_completion_cb([this](const simgrid::s4u::Activity& activity) {
    const auto* comm = dynamic_cast<const simgrid::s4u::Comm*>(&activity);
    if (comm == nullptr || comm->get_data<void>() == nullptr) return;
    end_in_simgrid(static_cast<Slot>(reinterpret_cast<std::uintptr_t>(comm->get_data<void>()) - 1));
  });
}

void FlowNetwork::start(PathId path, double bytes, Action on_end) {
  const Slot slot = new_slot();
  Flow& flow = at(slot);
  flow.path = path;
  flow.bytes = std::max(1.0, std::round(bytes));
  flow.on_end = std::move(on_end);
  if (on_flow_) on_flow_(path, flow.bytes);
  if (join(slot)) return run_alone(slot);
  Action share = [this, slot] {
    end_solitude_on(at(slot).path);
    give_to_simgrid(slot);
  };
  if (clock_.ahead()) {
    clock_.in_step(std::move(share));
  } else {
    share();
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

bool FlowNetwork::join(Slot slot) {
  bool is_alone = true;
  for (const LinkId link : platform_.links_on(at(slot).path)) {
    LinkUse& use = use_of(link);
    if (use.flows++ == 0) use.alone = slot;
    is_alone = is_alone && use.alone == slot;
  }
  if (is_alone) return true;
  for (const LinkId link : platform_.links_on(at(slot).path)) {
    if (use_of(link).alone == slot) use_of(link).alone = kNone;
  }
  return false;
}

void FlowNetwork::leave(Slot slot) {
  for (const LinkId link : platform_.links_on(at(slot).path)) {
    LinkUse& use = use_of(link);
    --use.flows;
    if (use.alone == slot) use.alone = kNone;
  }
}

void FlowNetwork::run_alone(Slot slot) {
  Flow& flow = at(slot);
  flow.alone.start(clock_, Seconds(0),
                   Seconds(flow.bytes / platform_.path_rate(flow.path).value()),
                   stretch_on(flow.path), [this, slot] { end(slot); });
}

double FlowNetwork::stretch_on(PathId path) const {
  const BytesPerSecond limit = limits_[static_cast<std::size_t>(path.index())].rate;
  return std::max(1.0, platform_.path_rate(path) / limit);
}

void FlowNetwork::end_solitude_on(PathId path) {
  for (const LinkId link : platform_.links_on(path)) {
    const Slot slot = use_of(link).alone;
    if (slot == kNone) continue;
    Flow& flow = at(slot);
    for (const LinkId own : platform_.links_on(flow.path)) use_of(own).alone = kNone;
    flow.bytes = flow.alone.stop().value() * platform_.path_rate(flow.path).value();
    give_to_simgrid(slot);
  }
}

void FlowNetwork::give_to_simgrid(Slot slot) {
  Flow& flow = at(slot);
  // SimGrid bounds a flow for good by the slowest link of the date of its start.
  const BytesPerSecond limit = limit_of(flow.path).rate;
  tell_limit(flow.path, Platform::kNoLimit);
  flow.earliest_end = earliest_end(flow.path, flow.bytes);
  clock_.occupy(flow.earliest_end);
  void* const data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(slot) + 1);
  flow.comm = platform_.send(flow.path, flow.bytes, data);
  tell_limit(flow.path, limit);
}

// Others on its links only slow a flow down. SimGrid ends flows up to a nanosecond early, together
// with what else happens then.
Seconds FlowNetwork::earliest_end(PathId path, double bytes) const {
  constexpr double kRounding = 1e-9;
  const Seconds alone(bytes / platform_.path_rate(path).value());
  return clock_.now() + alone * (1 - kRounding) - Seconds(2e-9);
}

void FlowNetwork::limit(PathId path, BytesPerSecond rate) {
  if (limit_of(path).rate == rate) return;
  limit_of(path).rate = rate;
  const std::span<const LinkId> links = platform_.links_on(path);
  const Slot alone = links.empty() ? kNone : use_of(links.front()).alone;
  if (alone != kNone && at(alone).path == path) return at(alone).alone.change(stretch_on(path));
  // SimGrid must not be told while it reports that a flow has ended.
  Action tell = [this, path] { tell_limit(path, limit_of(path).rate); };
  if (clock_.ahead()) {
    clock_.in_step(std::move(tell));
  } else {
    clock_.after(Seconds(0), std::move(tell));
  }
}

void FlowNetwork::tell_limit(PathId path, BytesPerSecond rate) {
  if (std::exchange(limit_of(path).in_simgrid, rate) == rate) return;
  platform_.set_limit(path, rate);
}

void FlowNetwork::end_in_simgrid(Slot slot) {
  clock_.catch_up();
  clock_.release(at(slot).earliest_end);
  end(slot);
}

void FlowNetwork::end(Slot slot) {
  Flow& flow = at(slot);
  leave(slot);
  if (on_flow_) on_flow_(flow.path, 0);
  Action on_end = std::exchange(flow.on_end, nullptr);
  if (flow.comm == nullptr) {
    free_slots_.push_back(slot);
  } else {
    // SimGrid still uses the Comm after its callback: the clock lets go of it a moment later.
    clock_.after(Seconds(0), [this, slot] {
      at(slot).comm.reset();
      free_slots_.push_back(slot);
    });
  }
  on_end();
}

}  // namespace tessera
