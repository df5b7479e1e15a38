#include "sim/engine/sim_clock.h"

#include <algorithm>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <utility>

namespace tessera {
namespace {

constexpr Seconds kNever{std::numeric_limits<double>::infinity()};

}  // namespace

void SimClock::at(Seconds date, Action action) {
  queue_.push({std::max(date, now_), next_sequence_++, std::move(action)});
  arm();
}

void SimClock::catch_up() {
  now_ = std::max(now_, Seconds(simgrid::s4u::Engine::get_clock()));
}

// A timer that an earlier one has overtaken still fires; `fire` ignores it.
void SimClock::arm() {
  if (queue_.empty() || queue_.top().date >= armed_for_) return;
  armed_for_ = queue_.top().date;
  // SimGrid's clock may lie one rounding above ours, and it refuses dates in its past.
  const double date = std::max(armed_for_.value(), simgrid::s4u::Engine::get_clock());
  simgrid::kernel::timer::Timer::set(date, [this, armed = armed_for_] { fire(armed); });
}

void SimClock::fire(Seconds armed_for) {
  if (armed_for != armed_for_) return;
  while (!queue_.empty() && queue_.top().date <= armed_for) {
    // The entry leaves the queue before its action runs, because the action may post others.
    Entry entry = std::move(const_cast<Entry&>(queue_.top()));
    queue_.pop();
    now_ = entry.date;
    entry.action();
  }
  armed_for_ = kNever;
  arm();
}

}  // namespace tessera
