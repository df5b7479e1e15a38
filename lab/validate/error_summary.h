#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// Errors of a set of predictions, in percent of the measured value; positive = predicted too slow.
struct ErrorSummary {
  int n = 0;
  double mean_abs_error_pct = 0;
  double median_abs_error_pct = 0;
  double max_abs_error_pct = 0;
  double bias_pct = 0;  ///< mean of the signed errors
  int intervals = 0;    ///< of the n, with an 80 % interval
  int covered = 0;      ///< of those, with the measurement in it

  /// Empty where no prediction had an interval.
  std::optional<double> coverage_pct() const {
    if (intervals == 0) return std::nullopt;
    return 100.0 * covered / intervals;
  }
};

/// Bounds [s] that hold the measurement with a probability of 80 %, as far as kernel times are
/// uncertain.
struct Bounds {
  double low = 0, high = 0;
  bool hold(double measured) const { return low <= measured && measured <= high; }
};

/// A prediction's error, and whether its interval holds the measurement.
struct ScoredError {
  double error_pct = 0;
  std::optional<bool> covered;  ///< empty: it has no interval
};

/// All zero for an empty set.
ErrorSummary summarize_errors(std::vector<double> signed_errors_pct);
ErrorSummary summarize_scored(const std::vector<ScoredError>& errors);

/// The rows that share a value of one column.
struct ErrorGroup {
  std::string by;   ///< column: "gpu", "parallelism", "mode", "model"
  std::string key;  ///< its value
  ErrorSummary errors;
};

}  // namespace tessera
