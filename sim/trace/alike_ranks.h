#pragma once

#include <cstddef>
#include <vector>

#include "sim/trace/timeline_index.h"

namespace tessera {

/// For each of `index.simulated()`, the first of them that ran alike, itself if none before did:
/// the same ops on the same GPU at the same times, and so did the other stages of its pipeline,
/// whose messages it got. What a report says of the one holds for the other, but for who came last
/// to a collective. May miss ranks that are alike.
std::vector<std::size_t> first_alike(const TimedProgram& timed, const TimelineIndex& index);

}  // namespace tessera
