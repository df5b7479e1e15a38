#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "app/html/step_page.h"
#include "sim/plan/timed_program.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// What a page of two steps draws of one: `timeline` as timeline_data() has it, and `memory` over
/// time of the rank that needs most. To be called where the step was simulated, which is a process
/// of its own.
nlohmann::ordered_json drawn_step(const TimedProgram& timed, const Timeline& timeline,
                                  const StepPageLimits& limits = {.slices = 40'000});

/// Two timelines on one axis, rows of `a` above those of `b`, with a mark where each step ends.
nlohmann::ordered_json joined_timelines(const nlohmann::ordered_json& a,
                                        const nlohmann::ordered_json& b);

/// Memory of `b` by category, with that of `a` as a line over it.
nlohmann::ordered_json joined_memory(const nlohmann::ordered_json& a,
                                     const nlohmann::ordered_json& b);

}  // namespace tessera
