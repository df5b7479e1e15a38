#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/predict/evaluation.h"
#include "predictor/gpu/gpu_overlay.h"
#include "predictor/measured/measurements.h"

namespace tessera {

/// One figure of a GPU's effect before and after a calibration.
struct CalibratedFigure {
  std::string name;  ///< "gemm_slowdown", "sustained_flops", "floors.linear"
  double before = 0, after = 0;
  std::int64_t rows = 0;  ///< that it was fitted to; 0 = follows from others, or unchanged
  std::string how;        ///< "fitted", or why not
};

/// Errors on the same rows before and after, by operator. `mean_abs_error_pct` as in evaluation.h.
struct CalibrationErrors {
  std::vector<KernelErrorGroup> before, after;
};

/// The effect of one GPU fitted to its kernels.
struct KernelCalibration {
  GpuOverlay overlay;  ///< without `tool_version`
  std::vector<CalibratedFigure> figures;
  CalibrationErrors fitted;        ///< rows that the figures were fitted to
  CalibrationErrors held_out;      ///< rows with split = test, which take no part in the fit
  std::vector<std::string> notes;  ///< rows that were left out, and why
};

/// Fits the effect of `gpu` to the rows of `file`, in fp32 and on tensor cores; what all GPUs share
/// stays as `weights` have it. Each log scalar moves until the weighted median of log(predicted /
/// measured) is zero over the rows in which it decides at least two thirds of the time, weighted by
/// its share and level over octaves of duration; one such row is enough, and a few odd rows do not
/// matter. A class without such rows:
/// - linear layers and batched products run on the same lanes and clock, so either takes the shift
///   of the other;
/// - memory-bound classes share the memory system, so each takes the mean shift of the others;
/// - a power limit that decides no row stays;
/// - a floor that decides no isolated call stays;
/// - the power limit of products on tensor cores takes the shift of their tiles.
/// Products on tensor cores are of a busy GPU: rows of isolated calls are left out.
/// Rows with split = test are only scored. Throws InputError where no row of `gpu` can be used,
/// where half of them take e^4 times as long as predicted or as short, and where they decide no
/// figure.
KernelCalibration calibrate_from_kernels(const MeasurementFile& file, const GpuSpec& gpu,
                                         const PredictorWeights& weights);

}  // namespace tessera
