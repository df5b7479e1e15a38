#pragma once

#include "hw/units/quantity.h"
#include "lab/validate/runs/training_runs.h"
#include "sim/plan/timed_program.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// The program of a run, and what is known of its time: needed where the framework records blocks
/// on streams (TimedProgram::records_streams), else null will do.
struct ProgramOfRun {
  const Program& program;
  const TimedProgram* timed = nullptr;
};

/// The simulated counterpart of the run's measured peak: allocated, reserved or of the whole
/// device, of the first rank, the last or the fullest, as the row says.
Bytes peak_of_training_run(const TrainingRun& run, const Scenario& scenario,
                           const ProgramOfRun& program);

/// What the fullest GPU needs: what the allocator reserves, the CUDA context and NCCL. A step fits
/// where that is no more than the GPU has.
Bytes device_peak(const Scenario& scenario, const ProgramOfRun& program);

}  // namespace tessera
