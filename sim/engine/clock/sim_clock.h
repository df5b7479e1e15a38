#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <set>
#include <vector>

#include "hw/units/quantity.h"
#include "sim/engine/clock/action.h"
#include "sim/engine/clock/outer_clock.h"

namespace tessera {

/// Actions in the order (date, order of posting). They run by the clock alone until one asks for
/// SimGrid's clock (`in_step`); from then on they are merged into it by one armed timer, ten times
/// cheaper than an actor that sleeps, and run in SimGrid's maestro. They must not block, and their
/// exceptions leave `run_alone()` or `Engine::run()`.
///
/// Beside SimGrid too, up to the date from which SimGrid may bring up something by itself, the end
/// of a flow, the clock runs ahead of SimGrid's, which saves a round of SimGrid per date. Whoever
/// counts on SimGrid's own clock asks by `in_step`, and says by `occupy` and `release` from when to
/// when SimGrid may bring up something.
class SimClock {
 public:
  /// Date of the action that runs now; a chain of actions adds its delays up without rounding them
  /// through SimGrid's clock.
  Seconds now() const { return now_; }
  /// Runs `action` at `date`, or now if that has passed.
  void at(Seconds date, Action&& action);
  void after(Seconds delay, Action&& action) { at(now_ + delay, std::move(action)); }
  /// Runs what is posted, and what that posts, until nothing is left or SimGrid is asked for.
  void run_alone();
  /// Whether `run_alone` ended because SimGrid is asked for.
  bool waits_for_simgrid() const { return !heap_.empty(); }
  /// SimGrid has started and is about to run: the rest runs with its clock.
  void join_simgrid(OuterClock& simgrid);
  /// Whether SimGrid's clock still has to come to `now`.
  bool ahead() const;
  /// Runs `action` at `now`, when SimGrid's clock has come there.
  void in_step(Action&& action);
  /// SimGrid has a flow of its own to care for, from here to `release`, and brings it up at
  /// `earliest` at the earliest: by default at any time.
  void occupy(Seconds earliest = Seconds(0)) { occupied_from_.insert(earliest); }
  void release(Seconds earliest = Seconds(0)) {
    occupied_from_.erase(occupied_from_.find(earliest));
  }
  /// Moves `now` to SimGrid's clock. To be called first in whatever SimGrid itself wakes up.
  void catch_up();

  /// Actions that ran.
  std::uint64_t events() const { return events_; }
  /// Runs `when_over` once the wall clock has advanced by `limit` from now on; looked at every few
  /// thousand actions. `when_over` may throw.
  void limit_wall_time(Seconds limit, Action when_over);
  /// Drops what is posted, now and later: the run ends.
  void stop();

 private:
  /// An action at a place that stays, so that it runs where it lies.
  struct Posted {
    Action action;
    Posted* next;  ///< of the instant; of a spare one: the next spare one
  };
  /// Actions of one date, which lie beside the queue in a chain: ranks that do the same post
  /// thousands of them.
  struct Instant {
    double date;
    std::uint64_t sequence;
    Posted* first;

    bool before(const Instant& other) const {
      return date != other.date ? date < other.date : sequence < other.sequence;
    }
  };
  /// An instant that still takes actions. One that has left this list takes no more, so that the
  /// instants of a date run in the order in which their actions were posted.
  struct Open {
    double date = -1;
    std::uint64_t sequence = 0;
    Posted* last = nullptr;
  };

  void arm();
  void fire(Seconds armed_for);
  /// Until the clock would run past both `date` and what SimGrid may bring up.
  void run_until(Seconds date);
  void push(const Instant& instant);
  void pop();
  Posted* post(Action&& action);
  void run(const Instant& instant);
  void look_at_wall_clock();
  bool may_come_before_simgrid(Seconds date) const {
    return occupied_from_.empty() || date < *occupied_from_.begin();
  }

  std::vector<Instant> heap_;  ///< four children per entry; the first is next
  std::deque<Posted> posted_;
  Posted* spare_ = nullptr;
  std::array<Open, 4> open_;
  std::size_t oldest_open_ = 0;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t events_ = 0;
  std::multiset<Seconds> occupied_from_;
  Seconds now_;
  Seconds armed_for_{std::numeric_limits<double>::infinity()};
  std::chrono::steady_clock::time_point wall_limit_;
  Action when_over_;
  bool stopped_ = false;
  OuterClock* simgrid_ = nullptr;  ///< null until it is joined
};

}  // namespace tessera
