#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/report/analysis/straggler.h"
#include "sim/report/provenance.h"

namespace tessera {

/// One of several steps of a job.
struct StepSample {
  Seconds time;
  std::optional<Straggler> straggler;
};

/// The rank that was the straggler of most steps.
struct FrequentStraggler {
  int rank = 0;
  int steps = 0;    ///< in which it was
  Seconds longest;  ///< mean over these steps of Straggler::longest
};

/// Step times of a job whose steps differ.
struct StepDistribution {
  std::vector<Seconds> times;  ///< by step
  Seconds mean;
  Seconds p5;
  Seconds p50;
  Seconds p95;
  Seconds p99;
  Seconds max;
  std::optional<FrequentStraggler> straggler;
};

/// Of at least one step. Percentiles are interpolated linearly between the sorted times.
StepDistribution distribution_of(const std::vector<StepSample>& steps);

std::string table_text(const StepDistribution& distribution, const Provenance& provenance);
std::string json_text(const StepDistribution& distribution, const Provenance& provenance);

}  // namespace tessera
