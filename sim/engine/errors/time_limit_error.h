#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "hw/units/quantity.h"

namespace tessera {

/// How far a simulation had come.
struct SimulationProgress {
  Seconds limit;                        ///< of the wall clock
  Seconds simulated;                    ///< date in the step
  std::uint64_t events;                 ///< that were simulated
  std::vector<std::string> unfinished;  ///< what the first streams that are not done wait for
};

/// A simulation took longer than it may.
class TimeLimitError : public std::runtime_error {
 public:
  explicit TimeLimitError(SimulationProgress progress);
  const SimulationProgress& progress() const { return progress_; }

 private:
  SimulationProgress progress_;
};

}  // namespace tessera
