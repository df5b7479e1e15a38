#include "tests/sim/remat/event_replay.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace tessera::remat::test {
namespace {

constexpr Nanoseconds kForEver = std::int64_t{1} << 60;

/// One stay of a tensor on the device.
struct Stay {
  Nanoseconds allocated, readable, freed = kForEver;
};

}  // namespace

EventReplay replay_events(const Graph& graph, const Schedule& schedule,
                          const std::optional<HostLink>& link) {
  std::map<TensorId, std::vector<Stay>> stays;
  std::map<TensorId, Nanoseconds> host;  // when the copy is complete
  std::vector<std::pair<Nanoseconds, ByteCount>> changes;
  Nanoseconds now = 0;
  Nanoseconds out = 0;
  Nanoseconds in = 0;
  const auto current = [&](TensorId q) -> Stay& {
    auto& list = stays[q];
    if (list.empty() || list.back().freed != kForEver) throw std::logic_error("not on the device");
    return list.back();
  };
  const auto present = [&](TensorId q) {
    return !stays[q].empty() && stays[q].back().freed == kForEver;
  };
  for (const Step& step : schedule) {
    const TensorId q = step.id;
    if (step.action == Action::compute) {
      Nanoseconds start = now;
      for (const TensorId x : graph.inputs(step.id)) start = std::max(start, current(x).readable);
      now = start + graph.time(step.id);
      changes.emplace_back(start, graph.workspace(step.id));
      changes.emplace_back(now, -graph.workspace(step.id));
      for (TensorId y = graph.first_output(step.id); y < graph.first_output(step.id + 1); ++y) {
        changes.emplace_back(start, graph.size(y));
        if (present(y))
          changes.emplace_back(now, -graph.size(y));
        else
          stays[y].push_back({start, now});
      }
    } else if (step.action == Action::copy_out) {
      if (host.count(q)) continue;
      const Nanoseconds start = std::max({now, out, current(q).readable});
      host[q] = out = start + link->copy_time(graph.size(q));
      if (!link->full_duplex) in = out;
    } else if (step.action == Action::copy_in) {
      if (present(q) || !host.count(q)) throw std::logic_error("cannot be copied in");
      const Nanoseconds start = std::max({now, in, host[q]});
      in = start + link->copy_time(graph.size(q));
      if (!link->full_duplex) out = in;
      stays[q].push_back({start, in});
      changes.emplace_back(start, graph.size(q));
    } else {
      Stay& stay = current(q);
      if (step.action == Action::release) {
        // The memory is free with the end of the copy; only what comes next waits for it.
        now = std::max(now, host.at(q));
      }
      if (stay.readable > now) throw std::logic_error("freed while it is copied in");
      stay.freed = now;
      changes.emplace_back(now, -graph.size(q));
    }
  }
  for (const TensorId q : graph.kept_tensors()) now = std::max(now, current(q).readable);
  std::sort(changes.begin(), changes.end());  // frees before allocations of the same moment
  EventReplay result{.time = now, .peak = graph.static_bytes()};
  ByteCount bytes = graph.static_bytes();
  for (const auto& [time, change] : changes) {
    bytes += change;
    result.peak = std::max(result.peak, bytes);
  }
  return result;
}

}  // namespace tessera::remat::test
