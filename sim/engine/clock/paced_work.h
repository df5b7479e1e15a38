#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "sim/engine/clock/sim_clock.h"

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
    end_ = since_ + work_ * stretch_;
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
    end_ = since_ + work_ * stretch_;
    if (end_ < looks_at_) post();
  }
  /// Ends it here, without `on_end`. The work that is left, at its own pace.
  Seconds stop() {
    ++version_;
    on_end_ = nullptr;
    const Seconds done = (std::max(clock_->now(), since_) - since_) / stretch_;
    return std::max(Seconds(0), work_ - done);
  }

 private:
  /// Work that is slowed down looks too early, and again at its end: much of it has its pace back
  /// by then, and every look that is void costs as much as one that counts.
  void post() {
    const std::int32_t version = ++version_;
    looks_at_ = end_;
    clock_->at(end_, [this, version] {
      if (version != version_) return;
      if (end_ > clock_->now()) return post();
      Action end = std::move(on_end_);  // it may start the next work here
      end();
    });
  }

  SimClock* clock_ = nullptr;
  Action on_end_;
  Seconds work_;  ///< left at `since_`
  Seconds since_;
  Seconds end_;       ///< at the pace of now
  Seconds looks_at_;  ///< whether it is done
  double stretch_ = 1;
  std::int32_t version_ = 0;  ///< a look that was posted before the last one is void
};

}  // namespace tessera
