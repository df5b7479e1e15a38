#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/reliability/cluster_run.h"

namespace tessera {

/// A figure over runs that differ by their seeds.
struct SeedFigure {
  double mean = 0;
  double low = 0, high = 0;  ///< 10th and 90th percentile: four of five runs lie between them
};

/// Percentiles with linear interpolation between neighbours. `values` must not be empty.
SeedFigure figure_of(std::vector<double> values);

/// What a cause takes from a run on average.
struct MeanCauseLoss {
  std::string cause;
  double events = 0, stops = 0;
  double lost_h = 0, slow_h = 0, detection_h = 0, restart_h = 0, waiting_h = 0;

  double total_h() const { return lost_h + slow_h + detection_h + restart_h + waiting_h; }
};

/// Runs of one plan over seeds.
struct RunStatistics {
  int seeds = 0;
  SeedFigure effective_ratio;  ///< in [0, 1]
  SeedFigure stops;
  std::optional<SeedFigure> hours_to_failure;  ///< of the job; empty where none stopped. The mean
                                               ///< is all time at risk over all stops
  SeedFigure node_availability, node_hours_out;
  SeedFigure checkpoints;
  /// Hours of the parts of `RunRecord`.
  SeedFigure wall, useful, slow, lost, checkpoint, detection, restart, waiting;
  SeedFigure fewer;                   ///< hours of training with fewer than all replicas
  int least_replicas = 0;             ///< that trained in any run
  std::vector<MeanCauseLoss> causes;  ///< largest loss first
};

/// Simulates `plan` for seeds `first_seed`, `first_seed` + 1, ...
std::vector<RunRecord> simulate_runs(const RunPlan& plan, std::uint64_t first_seed, int seeds);

/// `runs` must not be empty.
RunStatistics statistics_of(const std::vector<RunRecord>& runs);

}  // namespace tessera
