#include "lab/validate/error_text.h"

#include "hw/units/formatted.h"

namespace tessera {

std::string figure_cell(const std::optional<double>& value, const char* format) {
  if (!value) return "-";
  return formatted(format, *value);
}

std::string error_line(const std::string& name, const ErrorSummary& errors) {
  if (errors.n == 0) return text_line("%-34s n   0   nothing to compare", name.c_str());
  const auto coverage = errors.coverage_pct();
  const std::string held =
      coverage ? "   80 % interval holds " + figure_cell(coverage, "%.0f") + " %" : std::string();
  return text_line(
      "%-34s n %3d   mean |error| %5.1f %%   median %5.1f %%   max %5.1f %%   bias %+5.1f %%%s",
      name.c_str(), errors.n, errors.mean_abs_error_pct, errors.median_abs_error_pct,
      errors.max_abs_error_pct, errors.bias_pct, held.c_str());
}

nlohmann::ordered_json error_json(const ErrorSummary& errors) {
  const auto figure = [&](double value) {
    return errors.n > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  return {{"n", errors.n},
          {"mean_abs_error_pct", figure(errors.mean_abs_error_pct)},
          {"median_abs_error_pct", figure(errors.median_abs_error_pct)},
          {"max_abs_error_pct", figure(errors.max_abs_error_pct)},
          {"bias_pct", figure(errors.bias_pct)},
          {"intervals", errors.intervals},
          {"coverage_80_pct", errors.coverage_pct() ? nlohmann::ordered_json(*errors.coverage_pct())
                                                    : nlohmann::ordered_json()}};
}

nlohmann::ordered_json skipped_json(const std::vector<SkippedRow>& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const SkippedRow& row : rows)
    list.push_back({{"id", row.id}, {"where", row.where}, {"reason", row.reason}});
  return list;
}

nlohmann::ordered_json error_json(const ErrorGroup& group) {
  nlohmann::ordered_json entry = {{"by", group.by}, {"key", group.key}};
  entry.update(error_json(group.errors));
  return entry;
}

}  // namespace tessera
