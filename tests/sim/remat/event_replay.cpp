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

/// Runs a schedule's steps as events on a clock of their own.
class Events {
 public:
  Events(const Graph& graph, const std::optional<HostLink>& link) : graph_(graph), link_(link) {}

  void run(const Step& step) {
    switch (step.action) {
      case Action::compute:
        return compute(step.id);
      case Action::copy_out:
        return copy_out(step.id);
      case Action::copy_in:
        return copy_in(step.id);
      default:
        return leave(step);
    }
  }

  EventReplay result() {
    for (const TensorId q : graph_.kept_tensors()) now_ = std::max(now_, current(q).readable);
    std::sort(changes_.begin(), changes_.end());  // frees before allocations of the same moment
    EventReplay result{.time = now_, .peak = graph_.static_bytes()};
    ByteCount bytes = graph_.static_bytes();
    for (const auto& [time, change] : changes_) {
      bytes += change;
      result.peak = std::max(result.peak, bytes);
    }
    return result;
  }

 private:
  bool present(TensorId q) { return !stays_[q].empty() && stays_[q].back().freed == kForEver; }

  Stay& current(TensorId q) {
    if (!present(q)) throw std::logic_error("not on the device");
    return stays_[q].back();
  }

  void compute(OpId op) {
    Nanoseconds start = now_;
    for (const TensorId x : graph_.inputs(op)) start = std::max(start, current(x).readable);
    now_ = start + graph_.time(op);
    changes_.emplace_back(start, graph_.workspace(op));
    changes_.emplace_back(now_, -graph_.workspace(op));
    for (TensorId y = graph_.first_output(op); y < graph_.first_output(op + 1); ++y) {
      changes_.emplace_back(start, graph_.size(y));
      if (present(y))
        changes_.emplace_back(now_, -graph_.size(y));
      else
        stays_[y].push_back({start, now_});
    }
  }

  void copy_out(TensorId q) {
    if (host_.count(q)) return;
    const Nanoseconds start = std::max({now_, out_, current(q).readable});
    host_[q] = out_ = start + link_->copy_time(graph_.size(q));
    if (!link_->full_duplex) in_ = out_;
  }

  void copy_in(TensorId q) {
    if (present(q) || !host_.count(q)) throw std::logic_error("cannot be copied in");
    const Nanoseconds start = std::max({now_, in_, host_[q]});
    in_ = start + link_->copy_time(graph_.size(q));
    if (!link_->full_duplex) out_ = in_;
    stays_[q].push_back({start, in_});
    changes_.emplace_back(start, graph_.size(q));
  }

  /// A release frees its memory with the end of the copy; only what comes next waits for it.
  void leave(const Step& step) {
    Stay& stay = current(step.id);
    if (step.action == Action::release) now_ = std::max(now_, host_.at(step.id));
    if (stay.readable > now_) throw std::logic_error("freed while it is copied in");
    stay.freed = now_;
    changes_.emplace_back(now_, -graph_.size(step.id));
  }

  const Graph& graph_;
  const std::optional<HostLink>& link_;
  std::map<TensorId, std::vector<Stay>> stays_;
  std::map<TensorId, Nanoseconds> host_;  // when the copy is complete
  std::vector<std::pair<Nanoseconds, ByteCount>> changes_;
  Nanoseconds now_ = 0, out_ = 0, in_ = 0;
};

}  // namespace

EventReplay replay_events(const Graph& graph, const Schedule& schedule,
                          const std::optional<HostLink>& link) {
  Events events(graph, link);
  for (const Step& step : schedule) events.run(step);
  return events.result();
}

}  // namespace tessera::remat::test
