#pragma once

#include <vector>

#include "sim/plan/timed_program.h"

namespace tessera {

/// What of a pipeline stage runs slower, and how much.
struct StagePace {
  double clock = 1;  ///< share of the clock, in (0, 1]
  /// So many micro-batches keep the full clock where the pipeline fills (the first forward passes)
  /// and where it drains (the last backward passes), as does what belongs to no pass; 0: all
  /// kernels run slower.
  int spared = 0;
};

/// `timed` with every kernel that `paces`, one for each stage, slow at 1 / clock of its time. The
/// program must not have paces of its own.
TimedProgram at_paces(TimedProgram timed, const std::vector<StagePace>& paces);

/// Of the kernel time of a stage what a pace that spares `spared` micro-batches slows, in [0, 1].
double slowed_share(const TimedProgram& timed, int stage, int spared);

}  // namespace tessera
