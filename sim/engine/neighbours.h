#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/plan/timed_program.h"

namespace tessera {

/// One of several jobs on one cluster, and when its first step begins.
struct NeighbourJob {
  const TimedProgram* timed = nullptr;
  Seconds start;
};

/// A step of one of them.
struct NeighbourStep {
  Seconds begin, end;

  Seconds time() const { return end - begin; }
};

/// A link over which several jobs send.
struct ContendedLink {
  LinkId link;                ///< of the topology
  BytesPerSecond bandwidth;   ///< the least that a job sees
  std::vector<double> bytes;  ///< by job, that crossed it
  Seconds busy;               ///< some job's bytes were on it
  Seconds together;           ///< bytes of two jobs or more at once
};

struct NeighbourRun {
  std::vector<std::vector<NeighbourStep>> steps;  ///< by job, those that ended, in order
  std::vector<ContendedLink> links;               ///< in order of the topology
  Seconds end;
};

/// Simulates jobs beside each other, on GPUs of their own of one cluster: each begins its next step
/// when the last of its ranks has ended the one before, until every job has ended `steps` (>= 1).
/// Flows of all jobs share links max-min fairly. Ranks of jobs that share links with another are
/// simulated one by one; a job that shares none folds as it does alone. One call per process, as
/// simulate(), and throws what that throws.
NeighbourRun simulate_together(std::span<const NeighbourJob> jobs, int steps);

}  // namespace tessera
