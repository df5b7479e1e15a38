#include "lab/validate/validation_text.h"

#include <nlohmann/json.hpp>

#include "hw/units/formatted.h"
#include "lab/validate/error_text.h"
#include "sim/config/files/csv.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kErrorDefinition =
    "error = simulated / measured - 1; mean over the absolute values of the rows that were "
    "simulated and measured; 80 % interval: as far as kernel times are uncertain";

double milliseconds(Seconds time) {
  return time.value() * 1e3;
}

std::optional<double> in_milliseconds(const std::optional<Seconds>& time) {
  if (!time) return std::nullopt;
  return milliseconds(*time);
}

std::string row_interval_cell(const std::optional<Bounds>& interval) {
  if (!interval) return "-";
  return figure_cell(1e3 * interval->low, "%.1f") + ".." +
         figure_cell(1e3 * interval->high, "%.1f");
}

std::string table_row(const ModelRunScore& row) {
  const ModelRun& run = row.run;
  std::string text = text_line(
      "%-20s %-9s %-11s %-16s %5lld %5lld %10s %10s %19s %8s %9s  %-11s %s", run.gpu.c_str(),
      run.parallelism.c_str(), run.model.c_str(), run.mode.c_str(),
      static_cast<long long>(run.seq_len), static_cast<long long>(run.batch),
      figure_cell(in_milliseconds(run.measured), "%.1f").c_str(),
      figure_cell(in_milliseconds(row.simulated), "%.1f").c_str(),
      row_interval_cell(row.interval).c_str(), figure_cell(row.error_pct, "%+.1f").c_str(),
      figure_cell(row.published_error_pct, "%+.1f").c_str(),
      row.predictor_mode.empty() ? "-" : row.predictor_mode.c_str(),
      row.profile.empty() ? "-" : row.profile.c_str());
  if (!row.skipped.empty()) text += "    skipped: " + row.skipped + "\n";
  return text;
}

std::string narrow_head() {
  return text_line("%-20s %-8s %-11s %5s %5s %9s %9s %7s", "GPU", "layout", "model", "seq", "batch",
                   "meas. ms", "sim. ms", "error %");
}

/// Without interval, mode and profile.
std::string narrow_row(const ModelRunScore& row) {
  const ModelRun& run = row.run;
  std::string text = text_line(
      "%-20.20s %-8.8s %-11.11s %5lld %5lld %9s %9s %7s", run.gpu.c_str(), run.parallelism.c_str(),
      run.model.c_str(), static_cast<long long>(run.seq_len), static_cast<long long>(run.batch),
      figure_cell(in_milliseconds(run.measured), "%.1f").c_str(),
      figure_cell(in_milliseconds(row.simulated), "%.1f").c_str(),
      figure_cell(row.error_pct, "%+.1f").c_str());
  return row.skipped.empty() ? text : text + "    skipped: " + row.skipped + "\n";
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const ModelRunScore& row) {
  const ModelRun& run = row.run;
  const auto bound = [&](double Bounds::*end) {
    return row.interval ? Json(1e3 * (*row.interval).*end) : Json();
  };
  return {{"gpu", run.gpu},
          {"n_gpus", run.n_gpus},
          {"parallelism", run.parallelism},
          {"model", run.model},
          {"mode", run.mode},
          {"seq_len", run.seq_len},
          {"batch", run.batch},
          {"measured_ms", number_or_null(in_milliseconds(run.measured))},
          {"simulated_ms", number_or_null(in_milliseconds(row.simulated))},
          {"low_ms", bound(&Bounds::low)},
          {"high_ms", bound(&Bounds::high)},
          {"error_pct", number_or_null(row.error_pct)},
          {"published_error_pct", number_or_null(row.published_error_pct)},
          {"predictor_mode", row.predictor_mode.empty() ? Json() : Json(row.predictor_mode)},
          {"profile", row.profile.empty() ? Json() : Json(row.profile)},
          {"skipped", row.skipped.empty() ? Json() : Json(row.skipped)}};
}

}  // namespace

std::string validation_table(const ModelValidation& validation, TableWidth width) {
  const bool narrow = width == TableWidth::terminal;
  std::string text =
      narrow ? narrow_head()
             : text_line("%-20s %-9s %-11s %-16s %5s %5s %10s %10s %19s %8s %9s  %-11s %s", "GPU",
                         "layout", "model", "mode", "seq", "batch", "meas. ms", "sim. ms",
                         "80 % interval", "error %", "publ. %", "predictor", "profile");
  for (const ModelRunScore& row : validation.rows)
    text += narrow ? narrow_row(row) : table_row(row);
  text += "\n";
  for (const ErrorGroup& group : validation.groups) {
    text += error_line(group.by + " " + group.key, group.errors);
  }
  text += "\n" + error_line("all", validation.summary);
  if (validation.published.n > 0) {
    text += error_line("published prediction", validation.published);
  }
  text += std::string(kErrorDefinition) + "\n";
  if (!validation.skipped.empty()) text += "\n" + skipped_lines(validation.skipped);
  return text;
}

std::string validation_json(const ModelValidation& validation) {
  Json rows = Json::array();
  for (const ModelRunScore& row : validation.rows) rows.push_back(json_of(row));
  Json groups = Json::array();
  for (const ErrorGroup& group : validation.groups) groups.push_back(error_json(group));
  const Json document = {{"schema", "tessera.validation/1"},
                         {"definition", kErrorDefinition},
                         {"rows", rows},
                         {"summary", error_json(validation.summary)},
                         {"published_summary", error_json(validation.published)},
                         {"groups", groups},
                         {"skipped", skipped_json(validation.skipped)}};
  return document.dump(2) + "\n";
}

std::string validation_csv(const ModelValidation& validation) {
  std::string text =
      "gpu,n_gpus,parallelism,model,mode,seq_len,batch,measured_ms,simulated_ms,low_ms,high_ms,"
      "error_pct,published_error_pct,predictor_mode,profile,skipped\n";
  for (const ModelRunScore& row : validation.rows) {
    const ModelRun& run = row.run;
    const auto field = [](const std::optional<double>& value, const char* format) {
      return value ? figure_cell(value, format) : std::string();
    };
    const auto bound = [&](double Bounds::*end) {
      return row.interval ? figure_cell(1e3 * (*row.interval).*end, "%.4f") : std::string();
    };
    text += run.gpu + "," + std::to_string(run.n_gpus) + "," + run.parallelism + "," + run.model +
            "," + run.mode + "," + std::to_string(run.seq_len) + "," + std::to_string(run.batch) +
            "," + field(in_milliseconds(run.measured), "%.4f") + "," +
            field(in_milliseconds(row.simulated), "%.4f") + "," + bound(&Bounds::low) + "," +
            bound(&Bounds::high) + "," + field(row.error_pct, "%.2f") + "," +
            field(row.published_error_pct, "%.2f") + "," + row.predictor_mode + "," + row.profile +
            "," + csv_field(row.skipped) + "\n";
  }
  return text;
}

}  // namespace tessera
