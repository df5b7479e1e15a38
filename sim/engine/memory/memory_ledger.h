#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hw/units/quantity.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// What a ledger keeps.
enum class MemorySamples : std::uint8_t { all, peaks_only };

/// Bytes in use on one GPU over time. While a segment runs its peak counts, because the order of
/// its allocations within is not simulated. Use beyond the GPU's memory is recorded, not refused:
/// who has a limit asks first (memory_pressure.h).
class MemoryLedger {
 public:
  MemoryLedger(int rank, Bytes static_memory, MemorySamples kept = MemorySamples::all)
      : rank_(rank), kept_(kept), used_(static_memory) {
    sample(Seconds(0), used_);
  }

  void begin_segment(Seconds time, Bytes peak_above_start) {
    running_ = peak_above_start;
    sample(time, used_ + peak_above_start);
  }
  void end_segment(Seconds time, Bytes net) {
    running_ = Bytes(0);
    used_ += net;
    sample(time, used_);
  }
  /// Outside of segments: a buffer of a collective is made or freed.
  void change(Seconds time, Bytes by) {
    used_ += by;
    sample(time, used_);
  }

  /// In use, with all that the running segment may come to take.
  Bytes claimed() const { return used_ + running_; }
  /// In use when the running segment began.
  Bytes used() const { return used_; }
  Bytes peak() const { return peak_; }
  /// One per change, in order of time.
  const std::vector<MemorySample>& samples() const { return samples_; }

 private:
  void sample(Seconds time, Bytes used) {
    peak_ = std::max(peak_, used);
    if (kept_ == MemorySamples::peaks_only) return;
    if (samples_.empty() || samples_.back().used != used) samples_.push_back({rank_, time, used});
  }

  int rank_;
  MemorySamples kept_;
  Bytes used_;
  Bytes running_;  ///< peak of the running segment above `used_`
  Bytes peak_;
  std::vector<MemorySample> samples_;
};

}  // namespace tessera
