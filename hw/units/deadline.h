#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// Work took longer than it may.
class DeadlineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// As long as it lives, poll_deadline() of this thread throws where more than `limit` of wall-clock
/// time is over since it was made. No limit: 0. An inner one counts beside the outer ones.
class Deadline {
 public:
  /// `doing` and `setting` go into the message: "planning", "simulation.time_limit".
  Deadline(Seconds limit, std::string doing, std::string setting);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  /// 0 without a limit; else above 0.
  Seconds left() const;
  void check() const;

 private:
  using Clock = std::chrono::steady_clock;
  Seconds spent() const;

  Clock::time_point begin_ = Clock::now();
  Seconds limit_;
  std::string doing_, setting_;
  Deadline* outer_;
};

/// For loops that can take long. Looks at the clock once in many calls.
void poll_deadline();

}  // namespace tessera
