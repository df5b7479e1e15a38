#pragma once

#include <cstddef>
#include <vector>

#include "hw/units/quantity.h"

namespace tessera {

/// Durations of a segment's kernels on one GPU.
struct TimedSegment {
  std::vector<Seconds> kernel_durations;  ///< same order as Segment::kernels
  Seconds duration;                       ///< their sum
  Seconds host_time;                      ///< what the host needs to launch the segment
  std::vector<std::size_t> kernels;  ///< positions in TimedProgram::kernels, as kernel_durations
  double product_share = 0;  ///< of `duration`: matrix products, convolutions and fused attention

  Seconds last_kernel() const {
    return kernel_durations.empty() ? Seconds(0) : kernel_durations.back();
  }
};

}  // namespace tessera
