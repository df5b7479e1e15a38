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

struct FittedConstants {
  CollectiveConstants constants;
  LaunchStyles launch;
  double mean_log_error = 0;  ///< mean over the sweeps of each one's mean
};

/// The constants that fit `runs` best, from `start`: a search coordinate by coordinate for the
/// least mean |log(predicted / measured)|, every sweep with equal weight; of a dense sweep the
/// median row of every half octave, of one whose floor is the launch (twice what the tuner expects
/// and more) the sizes from 1 MB. Deterministic. Constants that no row depends on stay.
FittedConstants fit_constants(const std::vector<PlannedRun>& runs,
                              const CollectiveConstants& start);

Seconds predicted_time(const PlannedRun& run, const CollectiveConstants& constants,
                       const LaunchStyles& launch);

}  // namespace tessera
