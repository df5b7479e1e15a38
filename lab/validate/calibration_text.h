#pragma once

#include <string>

#include "lab/predict/calibration.h"
#include "lab/validate/calibrate_steps.h"

namespace tessera {

/// What `tessera calibrate` answers: the figures before and after, the errors before and after,
/// what was left out. JSON is of schema "tessera.calibration/1", documented in docs/calibration.md.
std::string calibration_table(const KernelCalibration& calibration);
std::string calibration_json(const KernelCalibration& calibration);
std::string calibration_table(const StepCalibration& calibration);
std::string calibration_json(const StepCalibration& calibration);

}  // namespace tessera
