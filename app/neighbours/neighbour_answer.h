#pragma once

#include <string>
#include <vector>

#include "app/neighbours/neighbour_file.h"
#include "hw/units/quantity.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// What a job's step takes alone and beside the others.
struct NeighbourTimes {
  std::string name;
  std::string nodes;  ///< "0-7"
  int gpus = 0;
  Seconds start;
  Seconds alone;
  Seconds together;           ///< mean of the steps that began when all jobs ran
  Seconds shortest, longest;  ///< of these
  int steps = 0;              ///< that were simulated
  bool meets_others = false;  ///< shares a link with another job

  double slowdown() const { return together / alone; }
};

/// A link over which several jobs send.
struct NeighbourLink {
  std::string name;
  double gigabytes_per_s = 0;  ///< its bandwidth
  std::vector<double> bytes;   ///< by job
  double busy_share = 0;       ///< of the simulated time
  double together_share = 0;   ///< bytes of two jobs or more at once

  double all_bytes() const;
};

struct NeighbourAnswer {
  std::string name;
  std::string cluster;
  int cluster_gpus = 0;
  Seconds simulated;
  std::vector<NeighbourTimes> jobs;
  std::vector<NeighbourLink> links;  ///< most shared first
};

/// Every job alone and all together, each in a process of its own; every job takes `steps` steps at
/// least. Throws what plan_step() throws.
NeighbourAnswer neighbours_answer(const PlacedJobs& placed, int steps,
                                  const PredictorWeights& weights);

/// At most 80 columns wide; `links`: at most so many of them.
std::string table_text(const NeighbourAnswer& answer, std::size_t links);
std::string json_text(const NeighbourAnswer& answer, const std::string& version);

}  // namespace tessera
