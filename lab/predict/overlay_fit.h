#pragma once

#include <vector>

#include "lab/predict/calibration.h"

namespace tessera {

using TimedRows = std::vector<const KernelMeasurement*>;

struct OverlayFit {
  GpuOverlay overlay;  ///< figures alone
  std::vector<CalibratedFigure> figures;
};

/// The fit of `calibrate_from_kernels`, on rows of `gpu` with a latency; those in other formats
/// than fp32 timed under load.
OverlayFit fit_overlay(const TimedRows& rows, const GpuSpec& gpu, const PredictorWeights& weights);

}  // namespace tessera
