#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hw/gpu_lookup.h"
#include "predictor/measured/measurements.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// A measured call of the same operator beside its prediction.
struct NearMeasurement {
  KernelMeasurement row;  ///< without `line`
  std::string gpu;
  double octaves = 0;  ///< distance: Euclidean over log2 of the ratios of all sizes
  Seconds measured;
  Seconds predicted;  ///< of a call timed as the row was: with or without the launch gap
};

/// The `count` timed rows of `file` with the operator and format of `kernel` (bf16 and fp16 count
/// as one) that are nearest to its sizes, those of `gpu` before all others; ties in the order of
/// the file. Nothing is fitted to them, so rows with split = test are among them. `lookup` finds
/// the other GPUs.
std::vector<NearMeasurement> nearest_measurements(const MeasurementFile& file,
                                                  const KernelMeasurement& kernel,
                                                  const GpuSpec& gpu,
                                                  const PredictorWeights& weights,
                                                  const GpuLookup& lookup, std::size_t count);

}  // namespace tessera
