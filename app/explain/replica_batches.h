#pragma once

#include <functional>
#include <string>
#include <vector>

#include "predictor/weights/weights.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// A step whose replicas take micro-batches of their own.
struct BatchSplit {
  std::vector<int> counts;     ///< micro-batches of every data-parallel replica
  std::vector<double> ends_s;  ///< of the last kernel of its backward passes, by replica
  Seconds step;
  bool fits = true;  ///< into the GPUs' memory
};

/// How the micro-batches of a step are spread over replicas of unequal speed.
struct BatchPlan {
  BatchSplit equal, chosen;  ///< as the scenario has them, or equal; the shortest step
  int simulated = 0;         ///< steps
};

/// Called after each simulated step: how many, and the shortest so far.
using OnBatchSplit = std::function<void(int simulated, Seconds best)>;

/// Spreads the micro-batches of `scenario`, whose replicas differ (perturbation.gpus), so that all
/// replicas end together. What a micro-batch takes on each replica comes from two simulated steps
/// of equal numbers; a step's end is a line in these, whose greatest value the greedy choice makes
/// as small as whole micro-batches (of the interleaved schedule: groups of them) allow. Then
/// micro-batches move from the replica that ends last to the one that ends first while the
/// simulated step becomes shorter. Throws InputError where replicas are alike, or meet in every
/// micro-batch.
BatchPlan plan_batches(const Scenario& scenario, const PredictorWeights& weights,
                       const OnBatchSplit& on_split = {});

/// At most 80 columns wide.
std::string table_text(const BatchPlan& plan);
std::string json_text(const BatchPlan& plan, const std::string& version);

}  // namespace tessera
