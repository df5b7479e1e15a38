#include "sim/validate/validation_text.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/validate/csv.h"
#include "sim/validate/text_line.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kErrorDefinition =
    "error = simulated / measured - 1; mean over the absolute values of the rows that were "
    "simulated and measured";

double milliseconds(Seconds time) {
  return time.value() * 1e3;
}

std::string cell(const std::optional<double>& value, const char* format) {
  if (!value) return "-";
  char text[64];
  std::snprintf(text, sizeof text, format, *value);
  return text;
}

std::optional<double> in_milliseconds(const std::optional<Seconds>& time) {
  if (!time) return std::nullopt;
  return milliseconds(*time);
}

std::string table_row(const ModelRunScore& row) {
  const ModelRun& run = row.run;
  std::string text = text_line(
      "%-20s %-9s %-11s %-16s %5lld %5lld %10s %10s %8s %9s  %s", run.gpu.c_str(),
      run.parallelism.c_str(), run.model.c_str(), run.mode.c_str(),
      static_cast<long long>(run.seq_len), static_cast<long long>(run.batch),
      cell(in_milliseconds(run.measured), "%.1f").c_str(),
      cell(in_milliseconds(row.simulated), "%.1f").c_str(), cell(row.error_pct, "%+.1f").c_str(),
      cell(row.published_error_pct, "%+.1f").c_str(),
      row.predictor_mode.empty() ? "-" : row.predictor_mode.c_str());
  if (!row.skipped.empty()) text += "    skipped: " + row.skipped + "\n";
  return text;
}

std::string summary_line(const std::string& name, const ErrorSummary& errors) {
  if (errors.n == 0) return text_line("%-34s n   0   nothing to compare", name.c_str());
  return text_line(
      "%-34s n %3d   mean |error| %5.1f %%   median %5.1f %%   max %5.1f %%   bias %+5.1f %%",
      name.c_str(), errors.n, errors.mean_abs_error_pct, errors.median_abs_error_pct,
      errors.max_abs_error_pct, errors.bias_pct);
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

/// Errors of no rows are unknown, not zero.
Json json_of(const ErrorSummary& errors) {
  const auto figure = [&](double value) { return errors.n > 0 ? Json(value) : Json(); };
  return {{"n", errors.n},
          {"mean_abs_error_pct", figure(errors.mean_abs_error_pct)},
          {"median_abs_error_pct", figure(errors.median_abs_error_pct)},
          {"max_abs_error_pct", figure(errors.max_abs_error_pct)},
          {"bias_pct", figure(errors.bias_pct)}};
}

Json json_of(const ModelRunScore& row) {
  const ModelRun& run = row.run;
  return {{"gpu", run.gpu},
          {"n_gpus", run.n_gpus},
          {"parallelism", run.parallelism},
          {"model", run.model},
          {"mode", run.mode},
          {"seq_len", run.seq_len},
          {"batch", run.batch},
          {"measured_ms", number_or_null(in_milliseconds(run.measured))},
          {"simulated_ms", number_or_null(in_milliseconds(row.simulated))},
          {"error_pct", number_or_null(row.error_pct)},
          {"published_error_pct", number_or_null(row.published_error_pct)},
          {"predictor_mode", row.predictor_mode.empty() ? Json() : Json(row.predictor_mode)},
          {"skipped", row.skipped.empty() ? Json() : Json(row.skipped)}};
}

}  // namespace

std::string validation_table(const ModelValidation& validation) {
  std::string text =
      text_line("%-20s %-9s %-11s %-16s %5s %5s %10s %10s %8s %9s  %s", "GPU", "layout", "model",
                "mode", "seq", "batch", "meas. ms", "sim. ms", "error %", "publ. %", "predictor");
  for (const ModelRunScore& row : validation.rows) text += table_row(row);
  text += "\n";
  for (const ErrorGroup& group : validation.groups) {
    text += summary_line(group.by + " " + group.key, group.errors);
  }
  text += "\n" + summary_line("all", validation.summary);
  if (validation.published.n > 0) {
    text += summary_line("published prediction", validation.published);
  }
  return text + kErrorDefinition + "\n";
}

std::string validation_json(const ModelValidation& validation) {
  Json rows = Json::array();
  for (const ModelRunScore& row : validation.rows) rows.push_back(json_of(row));
  Json groups = Json::array();
  for (const ErrorGroup& group : validation.groups) {
    Json entry = {{"by", group.by}, {"key", group.key}};
    entry.update(json_of(group.errors));
    groups.push_back(entry);
  }
  const Json document = {{"schema", "tessera.validation/1"},
                         {"definition", kErrorDefinition},
                         {"rows", rows},
                         {"summary", json_of(validation.summary)},
                         {"published_summary", json_of(validation.published)},
                         {"groups", groups}};
  return document.dump(2) + "\n";
}

std::string validation_csv(const ModelValidation& validation) {
  std::string text =
      "gpu,n_gpus,parallelism,model,mode,seq_len,batch,measured_ms,simulated_ms,error_pct,"
      "published_error_pct,predictor_mode,skipped\n";
  for (const ModelRunScore& row : validation.rows) {
    const ModelRun& run = row.run;
    const auto field = [](const std::optional<double>& value, const char* format) {
      return value ? cell(value, format) : std::string();
    };
    text += run.gpu + "," + std::to_string(run.n_gpus) + "," + run.parallelism + "," + run.model +
            "," + run.mode + "," + std::to_string(run.seq_len) + "," + std::to_string(run.batch) +
            "," + field(in_milliseconds(run.measured), "%.4f") + "," +
            field(in_milliseconds(row.simulated), "%.4f") + "," + field(row.error_pct, "%.2f") +
            "," + field(row.published_error_pct, "%.2f") + "," + row.predictor_mode + "," +
            csv_field(row.skipped) + "\n";
  }
  return text;
}

}  // namespace tessera
