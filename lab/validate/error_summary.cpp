#include "lab/validate/error_summary.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

ErrorSummary summarize_errors(std::vector<double> signed_errors_pct) {
  ErrorSummary summary;
  summary.n = static_cast<int>(signed_errors_pct.size());
  if (summary.n == 0) return summary;
  for (double& error : signed_errors_pct) {
    summary.bias_pct += error / summary.n;
    error = std::abs(error);
    summary.mean_abs_error_pct += error / summary.n;
    summary.max_abs_error_pct = std::max(summary.max_abs_error_pct, error);
  }
  summary.median_abs_error_pct = median(std::move(signed_errors_pct));
  return summary;
}

ErrorSummary summarize_scored(const std::vector<ScoredError>& errors) {
  std::vector<double> signed_errors;
  for (const ScoredError& error : errors) signed_errors.push_back(error.error_pct);
  ErrorSummary summary = summarize_errors(std::move(signed_errors));
  for (const ScoredError& error : errors) {
    if (!error.covered) continue;
    ++summary.intervals;
    summary.covered += *error.covered ? 1 : 0;
  }
  return summary;
}

}  // namespace tessera
