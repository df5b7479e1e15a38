#pragma once

#include <vector>

#include "sim/plan/timed_program.h"
#include "sim/trace/timeline_index.h"

namespace tessera {

/// Bytes that one link carried.
struct LinkTraffic {
  LinkId link;
  std::vector<double> bytes;  ///< by part of the step
};

/// What the links of a cluster carried in a step whose time is cut into equal parts.
struct LinkUse {
  Seconds part;
  std::vector<LinkTraffic> links;  ///< that carried anything, ascending
};

/// Adds up what every collective, message and copy of the step put on each of its links
/// (CollectiveCost::loads; what protocols add is not counted), evenly from the end of its latency
/// to its end: what a transfer loses to others on its way is spread over its time. Needs the
/// timeline alone, so a simulation without a report pays nothing. Ranks that others stand for count
/// with their own links.
LinkUse link_use(const TimedProgram& timed, const TimelineIndex& index, int parts);

}  // namespace tessera
