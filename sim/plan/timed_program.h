#pragma once

#include <cstddef>
#include <vector>

#include "hw/topology.h"
#include "hw/units/quantity.h"
#include "predictor/kernel_predictor.h"
#include "sim/scenario/collective_settings.h"
#include "sim/scenario/simulation_settings.h"
#include "workloads/program.h"

namespace tessera {

/// Durations of a segment's kernels on one GPU.
struct TimedSegment {
  std::vector<Seconds> kernel_durations;  ///< same order as Segment::kernels
  Seconds duration;                       ///< their sum
  Seconds host_time;                      ///< what the host needs to launch the segment
  std::vector<std::size_t> kernels;  ///< positions in TimedProgram::kernels, as kernel_durations
  double product_share = 0;  ///< of `duration`: matrix products, convolutions and fused attention
};

/// One of the distinct kernels of a program.
struct TimedKernel {
  Kernel kernel;
  KernelPrediction prediction;
};

/// A Program with everything the engine has to know about time. Immutable; the engine adds only
/// contention and waiting.
struct TimedProgram {
  Program program;
  std::vector<TimedSegment> segments;  ///< parallel to Program::segments
  Topology topology;
  Seconds communication_host_time;  ///< what the host needs to issue one collective or message
  Bytes memory_capacity;            ///< per GPU
  std::vector<TimedKernel> kernels = {};  ///< distinct ones; segments refer to them
  CollectiveSettings collectives = {};
  SimulationSettings simulation = {};
};

}  // namespace tessera
