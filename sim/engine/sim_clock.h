#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
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

  /// Actions that ran.
  std::uint64_t events() const { return events_; }
  /// Runs `when_over` once the wall clock has advanced by `limit` from now on; looked at every few
  /// thousand actions. `when_over` may throw.
  void limit_wall_time(Seconds limit, Action when_over);

 private:
  /// Actions lie beside the queue, so that its entries are cheap to move.
  struct Entry {
    double date;
    std::uint64_t sequence;
    std::uint32_t slot;  ///< of its action

    bool before(const Entry& other) const {
      return date != other.date ? date < other.date : sequence < other.sequence;
    }
  };

  void arm();
  void fire(Seconds armed_for);
  void push(const Entry& entry);
  void pop();
  void look_at_wall_clock();

  std::vector<Entry> heap_;  ///< four children per entry; the first is next
  std::vector<Action> actions_;
  std::vector<std::uint32_t> free_slots_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t events_ = 0;
  Seconds now_;
  Seconds armed_for_{std::numeric_limits<double>::infinity()};
  std::chrono::steady_clock::time_point wall_limit_;
  Action when_over_;
};

}  // namespace tessera
