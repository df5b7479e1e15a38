#pragma once

#include <vector>

#include "sim/collectives/collective_plan.h"

namespace tessera {

/// A measured time and what is predicted of it.
struct TimedCollective {
  CollectivePlan plan;
  Seconds measured;
};

/// Fits one group: per algorithm and protocol that NCCL takes over the sizes, factors on latency,
/// transfer and fill (least absolute relative error, drawn towards 1 where few sizes speak), then a
/// curve over the sizes of what is left, without spikes of single sizes, with a knot every
/// `octaves` of size (0: every octave, or half of one in a dense sweep). All `timed` have one
/// collective and one shape; at least one.
GroupCalibration fit_group(const std::vector<TimedCollective>& timed,
                           const CollectiveConstants& constants, double octaves = 0);

/// The launch that measurements of a group contain: what its shortest sizes (up to 1 KiB, or the
/// smallest) take beyond the predicted latency, where that is more than half of the latency;
/// otherwise nothing.
Seconds launch_floor(const std::vector<TimedCollective>& timed,
                     const CollectiveConstants& constants);

}  // namespace tessera
