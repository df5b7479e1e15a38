#pragma once

#include <nlohmann/json.hpp>

#include "sim/trace/timeline_index.h"

namespace tessera {

/// Where the kernels' time of a step lies, mean over GPUs: `phases` of `segments` (parts of a
/// layer) of `kernels`, each with `name` and `seconds`, longest first; phases in the order of time,
/// with their `colour`. The kernels of a segment share the time that its runs took as their
/// predictions do. `step_s` is the step.
nlohmann::ordered_json flame_data(const TimelineIndex& index, const TimedProgram& timed);

}  // namespace tessera
