#pragma once

#include <deque>
#include <vector>

#include "sim/engine/communication/communication_plan.h"
#include "sim/engine/neighbours.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// The transfers of jobs on one cluster, over one network.
struct NeighbourNetwork {
  std::deque<CommunicationPlan> plans;  ///< by job
  PlannedNetwork network;               ///< of all
  std::vector<int> job_of_path;
  std::vector<ContendedLink> contended;  ///< links that several jobs cross; nothing has crossed yet
  std::vector<std::vector<int>> contended_on_path;  ///< positions in `contended`
};

/// `jobs` must outlive it; where a job shares links, its ranks lose their folds.
NeighbourNetwork neighbour_network(std::vector<TimedProgram>& jobs);

}  // namespace tessera
