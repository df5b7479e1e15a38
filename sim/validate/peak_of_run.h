#pragma once

#include "hw/units/quantity.h"
#include "sim/scenario/scenario.h"
#include "sim/validate/training_runs.h"

namespace tessera {

/// The simulated counterpart of the run's measured peak: allocated, reserved or of the whole
/// device, of the last rank or of the fullest, as the row says. Needs no time: a rank's memory
/// follows from the order of its program.
Bytes peak_of_training_run(const TrainingRun& run, const Scenario& scenario);

}  // namespace tessera
