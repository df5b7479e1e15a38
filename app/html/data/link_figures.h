#pragma once

#include <nlohmann/json.hpp>

#include "sim/plan/timed_program.h"
#include "sim/trace/timeline_index.h"

namespace tessera {

/// How busy the links were over the step: `parts` of `part_s` each, `rows` of links with `name`,
/// `technology`, `rate` [bytes/s] and `use` by part (share of the rate), busiest first;
/// `shown` of them in the heat map. `drawing` holds the topology, each of its `lines` with the rows
/// of its directions. Null where no link was used, and for steps whose ranks have more ops
/// together than a page is worth (`kMostLinkOps`).
nlohmann::ordered_json link_figures(const TimelineIndex& index, const TimedProgram& timed);

constexpr std::size_t kMostLinkOps = 4'000'000;

}  // namespace tessera
