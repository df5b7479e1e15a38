#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "sim/engine/sim_clock.h"

namespace tessera {

/// Work whose pace changes while it is done, on the clock. Stays where it is while it runs.
class PacedWork {
 public:
  /// From `lead` after now on, `work` is done at `stretch` seconds for each of its own; then
  /// `on_end` runs.
  void start(SimClock& clock, Seconds lead, Seconds work, double stretch, Action&& on_end) {
    clock_ = &clock;
    on_end_ = std::move(on_end);
    since_ = clock.now() + lead;
    work_ = work;
    stretch_ = stretch;
    post();
  }
  void change(double stretch) {
    if (stretch == stretch_) return;
    const Seconds now = clock_->now();
    if (now > since_) {
      work_ = std::max(Seconds(0), work_ - (now - since_) / stretch_);
      since_ = now;
    }
    stretch_ = stretch;
    post();
  }

 private:
  void post() {
    const std::int32_t version = ++version_;
    clock_->at(since_ + work_ * stretch_, [this, version] {
      if (version != version_) return;
      Action end = std::move(on_end_);  // it may start the next work here
      end();
    });
  }

  SimClock* clock_ = nullptr;
  Action on_end_;
  Seconds work_;  ///< left at `since_`
  Seconds since_;
  double stretch_ = 1;
  std::int32_t version_ = 0;  ///< an end that was posted before the last change is void
};

}  // namespace tessera
