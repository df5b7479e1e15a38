#pragma once

#include "predictor/kernel_predictor.h"
#include "predictor/measured/measurements.h"

namespace tessera {

/// The time that `row` would have shown: with the launch gap of an isolated call, or without it
/// where calls were queued or replayed from a graph.
inline Seconds timed_call(const KernelPredictor& predictor, const KernelMeasurement& row) {
  const Kernel kernel = kernel_of(row);
  const Seconds queued = predictor.duration(kernel);
  if (row.timing != CallTiming::isolated) return queued;
  return queued + predictor.isolated_launch_overhead(kernel);
}

}  // namespace tessera
