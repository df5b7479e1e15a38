#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "sim/remat/portable_math.h"
#include "sim/remat/tessera/plan_evaluator.h"
#include "sim/remat/tessera/price_sweep.h"

namespace tessera::remat {

struct PriceSearchOptions {
  std::vector<double> extensions{1, 0.5, 0.2, 0};
  int bisections = 4;
  int updates = 25;
  int rounds = 400;  ///< of the neighbourhood search in the space of prices
  std::uint64_t seed = 1;
};

/// The best plan that a search met.
struct Incumbent {
  StagePlan plan;
  Schedule schedule;
  Prices prices;  ///< empty where the plan comes from elsewhere
  Evaluation cost;
};

/// Looks for prices whose plan fits the budget and is fast: bisection of one price for all crowded
/// stages, multiplicative updates by how full each stage is, then perturbations of the best.
/// All counts are fixed, so that equal inputs give equal plans.
class PriceSearch {
 public:
  /// `link` where copies are allowed; `host_bytes` bounds all host copies together.
  PriceSearch(const Graph& graph, ByteCount budget, const std::optional<HostLink>& link,
              ByteCount host_bytes);

  /// The best plan of recomputation alone; nothing where none was met.
  const std::optional<Incumbent>& recompute_only(const PriceSearchOptions& options);
  /// With copies, from `start` (the result of recompute_only, or null).
  const std::optional<Incumbent>& hybrid(const PriceSearchOptions& options, const Incumbent* start);

  /// With copies, in few sweeps: updates for each of `copy_shares` from the prices of `start`, or
  /// of a bisection where it is null; then rounds.
  const std::optional<Incumbent>& short_hybrid(const PriceSearchOptions& options,
                                               const std::vector<double>& copy_shares,
                                               const Incumbent* start);

  /// Tries known prices, of another budget for instance; with copies once for each of
  /// `copy_shares`, without where there is none.
  void warm(Prices prices, const std::vector<double>& copy_shares);

  /// Copies for every gap, on demand: fits every budget from the lower bound up.
  void try_all_copied();
  /// The same behind other attempts; not evaluated where its copies alone take as long as the best.
  void try_all_copied_last();

  /// The plan that takes nothing off the device.
  const StagePlan& keep_all_plan() const { return keep_all_; }

  const std::optional<Incumbent>& best() const { return best_; }
  /// Lowest peak met while nothing fitted [bytes, with static].
  ByteCount least_peak() const { return closest_peak_; }

 private:
  Evaluation attempt(const Prices& prices, double noise);
  /// What is known of equal prices or of an equal plan.
  struct Known {
    std::uint64_t prices, plan;  ///< hashes
    Evaluation cost;
    std::vector<ByteCount> stage_peaks;
  };
  const Known* known(std::uint64_t Known::*of, std::uint64_t hash) const;
  /// Evaluates `plan_`, and keeps it if it is the best so far.
  Evaluation try_plan(const Prices& prices);
  double bisect(Prices prices, const PriceSearchOptions& options);
  /// Multiplies prices by how full stages are; returns false where it should stop.
  void update(Prices& prices, const PriceSearchOptions& options);
  void step_prices(Prices& prices, double step);
  void neighbourhood(const PriceSearchOptions& options);
  void perturb(Prices& prices, const PriceSearchOptions& options);
  void start_from_slack();
  void spare_host_memory(const Incumbent* start);
  Prices flat(double exponent) const;
  Prices all_copied() const;

  const Graph& graph_;
  ByteCount budget_, host_bytes_;
  std::optional<HostLink> link_;
  PriceSweep sweep_;
  PlanEvaluator evaluator_;
  StagePlan plan_, keep_all_;
  std::vector<Known> known_;
  std::vector<ByteCount> peaks_;  ///< by stage, of the last attempt
  std::vector<double> times_, noisy_;
  std::vector<std::pair<std::size_t, double>> steps_;  ///< of prices: the stage, and how full it is
  std::vector<double> factors_;                        ///< likewise
  std::vector<Nanoseconds> clock_;
  std::vector<std::uint8_t> crowded_;  ///< by stage: over the budget without a plan
  std::vector<ByteCount> base_peaks_;
  double unit_ = 1;
  Random random_;
  std::optional<Incumbent> best_;
  Prices closest_;  ///< of the lowest peak, while nothing fits
  ByteCount closest_peak_ = 0;
  bool swap_ = false;
};

}  // namespace tessera::remat
