#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/expect/expected_runs.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// A phase whose time is not what was expected.
struct MovedPhase {
  TimeCategory phase = TimeCategory::forward;
  Seconds expected, simulated;
  Seconds change() const { return simulated - expected; }
};

/// A run as simulated now, beside what was expected of it.
struct RunCheck {
  ExpectedRun run;
  Seconds step_time;
  TimeBreakdown phases;

  /// Simulated over expected minus 1; nothing where nothing was expected.
  std::optional<double> change() const;
  bool within(double tolerance) const;
  /// The phase that moved most in the direction of the step; nothing where the table has no phases.
  std::optional<MovedPhase> moved() const;
};

/// Simulates every run, each in a process of its own, at most `jobs` at a time. Throws InputError
/// that names the rows that cannot be simulated.
std::vector<RunCheck> check_runs(std::vector<ExpectedRun> runs, const PredictorWeights& weights,
                                 int jobs, const std::function<void(std::size_t)>& on_ended);

/// A line for each run, at most 80 columns wide where names allow it.
std::string table_text(const std::vector<RunCheck>& checks, double tolerance);
std::string json_text(const std::vector<RunCheck>& checks, double tolerance);
/// The table with what was simulated as what is expected.
std::string recorded_csv(const std::vector<RunCheck>& checks);

}  // namespace tessera
