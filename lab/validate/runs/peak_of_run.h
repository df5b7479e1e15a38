#pragma once

#include "hw/units/quantity.h"
#include "lab/validate/runs/training_runs.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// The simulated counterpart of the run's measured peak: allocated, reserved or of the whole
/// device, of the first rank, the last or the fullest, as the row says. Needs no time: a rank's
/// memory follows from the order of its program.
Bytes peak_of_training_run(const TrainingRun& run, const Scenario& scenario,
                           const Program& program);

/// What the fullest GPU needs: what the allocator reserves, the CUDA context and NCCL. A step fits
/// where that is no more than the GPU has.
Bytes device_peak(const Scenario& scenario, const Program& program);

}  // namespace tessera
