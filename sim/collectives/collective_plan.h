#pragma once

#include <span>

#include "sim/collectives/collective.h"
#include "sim/collectives/collective_tuning.h"
#include "sim/collectives/effective_time.h"

namespace tessera {

/// One way to run a collective, and how long its bytes keep the limiting link busy.
struct CollectiveWay {
  NcclExpectation choice;
  Seconds on_links;
};

/// What does not depend on a CollectiveTuning: who takes part and how NCCL may run it. Fits compute
/// it once per measurement.
struct CollectivePlan {
  CollectiveCall call;
  RingShape shape;
  std::vector<CollectiveWay> ways;  ///< nccl_candidates(), the tuner's choice first
};

/// For at least two ranks and one byte; errors as of collective_cost().
CollectivePlan plan_collective(const Topology& topology, const CollectiveCall& call,
                               std::span<const int> ranks);

/// The parts of its time alone, by constants or by a calibration of its group as well; as
/// collective_cost() has them.
struct TimedWay {
  std::size_t way = 0;  ///< position in CollectivePlan::ways of the fastest
  TimeParts parts;
  Seconds time() const { return parts.latency + parts.transfer + parts.fill; }
};
TimedWay time_parts(const CollectivePlan& plan, const CollectiveConstants& constants);
Seconds time_alone(const CollectivePlan& plan, const CollectiveTuning& tuning);

/// Changes `parts` by what `group` says of `choice`; no group, no change.
void apply_calibration(const GroupCalibration* group, const CollectiveCall& call,
                       const NcclExpectation& choice, TimeParts& parts);

}  // namespace tessera
