#pragma once

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
};

/// All zero for an empty set.
ErrorSummary summarize_errors(std::vector<double> signed_errors_pct);

/// The rows that share a value of one column.
struct ErrorGroup {
  std::string by;   ///< column: "gpu", "parallelism", "mode", "model"
  std::string key;  ///< its value
  ErrorSummary errors;
};

}  // namespace tessera
