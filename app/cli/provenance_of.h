#pragma once

#include "predictor/weights/weights.h"
#include "sim/plan/timed_program.h"
#include "sim/report/provenance.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// Where the results of a simulated scenario come from, in words.
Provenance provenance_of(const Scenario& scenario, const PredictorWeights& weights,
                         const TimedProgram& timed);

}  // namespace tessera
