#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "hw/units/quantity.h"

namespace tessera {

/// Something to do at a date. Captures of up to 16 trivially copyable bytes cost no allocation.
using Action = std::function<void()>;

/// Actions in the order (date, order of posting), merged into SimGrid's clock by one armed timer.
/// Ten times cheaper than an actor that sleeps. Actions run in SimGrid's maestro: they must not
/// block, and their exceptions leave `Engine::run()`.
class SimClock {
 public:
  /// Date of the action that runs now; a chain of actions adds its delays up without rounding them
  /// through SimGrid's clock.
  Seconds now() const { return now_; }
  /// Runs `action` at `date`, or now if that has passed.
  void at(Seconds date, Action action);
  void after(Seconds delay, Action action) { at(now_ + delay, std::move(action)); }
  /// Moves `now` to SimGrid's clock. To be called first in whatever SimGrid itself wakes up.
  void catch_up();

 private:
  struct Entry {
    Seconds date;
    std::uint64_t sequence;
    Action action;
    bool operator>(const Entry& other) const {
      return date != other.date ? date > other.date : sequence > other.sequence;
    }
  };

  void arm();
  void fire(Seconds armed_for);

  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::uint64_t next_sequence_ = 0;
  Seconds now_;
  Seconds armed_for_{std::numeric_limits<double>::infinity()};
};

}  // namespace tessera
