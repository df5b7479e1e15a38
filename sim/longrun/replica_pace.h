#pragma once

#include <cstdint>
#include <vector>

#include "hw/units/quantity.h"
#include "sim/scenario/reliability_settings.h"
#include "workloads/step_options.h"

namespace tessera {

/// Neighbouring data-parallel ranks of `step` that can only leave a job together: they share
/// experts, or one copy of states that are sharded in groups. `alive`: those that are left go on
/// with what they hold, so every group has all the states; 0 where none has.
int replicas_that_leave_together(const StepOptions& step, bool alive);

/// Micro-batches of the replica that has most, where `left` of `step`'s replicas train. Of a kept
/// batch as evenly as whole micro-batches, and the schedule's groups of them, allow.
std::int64_t micro_batches_without(const StepOptions& step, int left, BatchWithout batch);

/// A step with fewer replicas, simulated.
struct StepWithout {
  int left = 0;  ///< replicas that train
  std::int64_t micro_batches = 0;
  Seconds step;
  bool fits = true;  ///< into the GPUs' memory
};

/// Of the numbers of replicas that are left in turn, descending, those with which a step should be
/// simulated so that pace_without() knows the others: at most four.
std::vector<int> replicas_to_simulate(const StepOptions& step, const std::vector<int>& left,
                                      BatchWithout batch);

/// Training in a unit of time over that of all replicas, by the number of groups of `together`
/// replicas that train, from 0. `steps` are simulated ones, `whole` the one of all. Between them
/// the time of a step is linear in its micro-batches (of a kept batch) or in the replicas.
std::vector<double> pace_without(const StepOptions& step, Seconds whole,
                                 const std::vector<StepWithout>& steps, int together,
                                 BatchWithout batch);

}  // namespace tessera
