#include "lab/validate/collectives/collective_text.h"

#include <map>
#include <nlohmann/json.hpp>

#include "hw/units/formatted.h"
#include "lab/validate/error_text.h"
#include "sim/collectives/collective_names.h"
#include "sim/config/files/csv.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

std::string group_line(const std::string& name, const ErrorSummary& errors) {
  return text_line("%-68s %6d %8.1f %8.1f %8.1f %+8.1f %6s", name.substr(0, 68).c_str(), errors.n,
                   errors.mean_abs_error_pct, errors.median_abs_error_pct, errors.max_abs_error_pct,
                   errors.bias_pct, figure_cell(errors.coverage_pct(), "%.0f").c_str());
}

Json row_json(const ScoredCollective& row) {
  Json json;
  for (const auto& [column, value] : row.run.columns) json[column] = value;
  const bool scored = row.skipped.empty();
  json["predicted_us"] = scored ? Json(row.predicted.value() * 1e6) : Json();
  json["low_us"] = scored ? Json(row.interval.low * 1e6) : Json();
  json["high_us"] = scored ? Json(row.interval.high * 1e6) : Json();
  json["error_pct"] = scored ? Json(row.error_pct) : Json();
  json["skipped"] = scored ? Json() : Json(row.skipped);
  json["calibrated"] = row.calibrated;
  json["algorithm"] = scored ? Json(name_of(row.algorithm)) : Json();
  json["protocol"] = scored ? Json(name_of(row.protocol)) : Json();
  return json;
}

}  // namespace

std::string collective_table(const CollectiveValidation& validation) {
  std::string text = "predictions from " + validation.basis + "\n\n";
  text += text_line("%-68s %6s %8s %8s %8s %8s %6s", "errors in %", "rows", "mean", "median", "max",
                    "bias", "held");
  std::string by;
  for (const ErrorGroup& group : validation.groups) {
    if (group.by != by) text += "by " + group.by + "\n";
    by = group.by;
    text += group_line("  " + group.key, group.errors);
  }
  text += group_line("all rows", validation.summary);
  if (!validation.fitted_constants.empty()) text += "\nfitted to all named rows:\n";
  for (const auto& [name, value] : validation.fitted_constants)
    text += text_line("  %-24s %8.3f", name.c_str(), value);
  if (!validation.skipped.empty()) text += "\n" + skipped_lines(validation.skipped);
  return text +
         "\nerror = predicted / measured - 1; mean, median and max of absolute values; plateau "
         "bandwidth: bus\nbandwidth at the largest size of each sweep that reaches 64 MB; held: "
         "of\n100 rows those within their 80 % interval (what constants fitted to other systems "
         "miss of a\nsystem: a factor of 1.49 below 4 MB, 1.15 from there on)\n";
}

std::string collective_json(const CollectiveValidation& validation) {
  Json json;
  json["basis"] = validation.basis;
  json["rows"] = Json::array();
  for (const ScoredCollective& row : validation.rows) json["rows"].push_back(row_json(row));
  json["summary"] = error_json(validation.summary);
  json["groups"] = Json::array();
  for (const ErrorGroup& group : validation.groups) json["groups"].push_back(error_json(group));
  json["skipped"] = skipped_json(validation.skipped);
  return json.dump(2) + "\n";
}

std::string collective_csv(const CollectiveValidation& validation) {
  std::string text;
  if (validation.rows.empty()) return text;
  for (const auto& [column, value] : validation.rows.front().run.columns)
    text += csv_field(column) + ",";
  text += "predicted_us,low_us,high_us,error_pct,skipped\n";
  for (const ScoredCollective& row : validation.rows) {
    for (const auto& [column, value] : row.run.columns) text += csv_field(value) + ",";
    if (row.skipped.empty())
      text += formatted("%.6g,%.6g,%.6g,%.4g,", row.predicted.value() * 1e6, row.interval.low * 1e6,
                        row.interval.high * 1e6, row.error_pct);
    else
      text += ",,,," + csv_field(row.skipped);
    text += "\n";
  }
  return text;
}

}  // namespace tessera
