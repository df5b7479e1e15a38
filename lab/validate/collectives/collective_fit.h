#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lab/validate/collectives/collective_runs.h"
#include "lab/validate/runs/launch_style.h"
#include "sim/collectives/collective_plan.h"

namespace tessera {

/// A row whose cluster is known.
struct PlannedRun {
  std::size_t row = 0;  ///< position in the file
  CollectivePlan plan;
  Seconds measured;
  std::string launch;
  int ranks = 0;
  std::string sweep;  ///< rows of one sweep differ in size only
};

/// What constants fitted to other systems miss of one below 4 MB in four of five rows, as the
/// logarithm of a ratio.
inline constexpr double kMissOfASmallCollective = 0.40;

struct FittedConstants {
  CollectiveConstants constants;
  LaunchStyles launch;
  double mean_cost = 0;       ///< what the fit made least
  double mean_log_error = 0;  ///< mean |log error| over the sweeps of each one's mean
};

/// The constants that fit `runs` best, from `start`: a search coordinate by coordinate for the
/// least mean cost of log(predicted / measured), which grows as its square below
/// kMissOfASmallCollective and as its size beyond, every sweep with equal weight; of a dense sweep
/// the median row of every half octave, of one whose floor is the launch (twice what the tuner
/// expects and more) the sizes from 1 MB. Deterministic. Constants that no row depends on stay.
FittedConstants fit_constants(const std::vector<PlannedRun>& runs,
                              const CollectiveConstants& start);

Seconds predicted_time(const PlannedRun& run, const CollectiveConstants& constants,
                       const LaunchStyles& launch);

}  // namespace tessera
