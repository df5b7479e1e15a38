#pragma once

#include <vector>

#include "hw/topology.h"
#include "hw/units/quantity.h"
#include "workloads/program.h"

namespace tessera {

/// Durations of a segment's kernels on one GPU.
struct TimedSegment {
  std::vector<Seconds> kernel_durations;  ///< same order as Segment::kernels
  Seconds duration;                       ///< their sum
  Seconds host_time;                      ///< what the host needs to launch the segment
  Seconds
      extrapolated;  ///< part of it in kernels outside the range of the predictor's training data
};

/// A Program with everything the engine has to know about time. Immutable; the engine adds only
/// contention and waiting.
struct TimedProgram {
  Program program;
  std::vector<TimedSegment> segments;  ///< parallel to Program::segments
  Topology topology;
  Seconds communication_host_time;  ///< what the host needs to issue one collective or message
  Bytes memory_capacity;            ///< per GPU
};

}  // namespace tessera
