#pragma once

#include <nlohmann/json.hpp>

#include "app/html/step_page.h"
#include "sim/report/analysis/critical_path.h"

namespace tessera {

/// The part "timeline" of a page. Times of slices are whole nanoseconds: the gap since the slice
/// before, and the length.
nlohmann::ordered_json timeline_data(const TimedProgram& timed, const Timeline& timeline,
                                     const std::vector<PathPiece>& path,
                                     const StepPageLimits& limits);

}  // namespace tessera
