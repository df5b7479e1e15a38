#include "sim/validate/training_run_text.h"

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/validate/csv.h"
#include "sim/validate/error_text.h"
#include "sim/validate/text_line.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDefinition =
    "error = simulated / measured - 1 of the step time; mean over the absolute values of the rows "
    "that were simulated and measured. Simulated peak: bytes allocated, highest of all ranks; "
    "measured: allocated, reserved or nvidia-smi, as the row says.";

std::optional<double> seconds(const std::optional<Seconds>& time) {
  if (!time) return std::nullopt;
  return time->value();
}

std::string layout_text(const ParallelLayout& layout) {
  return std::to_string(layout.tensor) + "x" + std::to_string(layout.pipeline) + "x" +
         std::to_string(layout.data);
}

std::string table_row(const TrainingRunScore& row) {
  const TrainingRun& run = row.run;
  return text_line(
      "%-7s %-16s %-19s %-5s %-28s %9s %5lld %5lld %5lld %9s %9s %8s %8s", run.id.c_str(),
      run.gpu.c_str(), row.profile.c_str(), run.precision.c_str(),
      (run.model + " L" + std::to_string(run.layers) + " h" + std::to_string(run.hidden)).c_str(),
      layout_text(run.layout).c_str(), static_cast<long long>(run.sequence_length),
      static_cast<long long>(run.micro_batch), static_cast<long long>(run.global_batch),
      figure_cell(seconds(run.step_time), "%.4f").c_str(),
      figure_cell(seconds(row.simulated), "%.4f").c_str(),
      figure_cell(row.error_pct, "%+.1f").c_str(),
      figure_cell(row.memory_error_pct, "%+.1f").c_str());
}

/// Without the place, so that equal reasons of many rows are one.
std::string reason_of(const std::string& skipped) {
  const std::size_t place = skipped.find(": ");
  const bool names_a_line =
      place != std::string::npos && skipped.substr(0, place).find(".csv:") != std::string::npos;
  return names_a_line ? skipped.substr(place + 2) : skipped;
}

Json json_of(const TrainingRunScore& row) {
  const TrainingRun& run = row.run;
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  return {{"id", run.id},
          {"gpu", run.gpu},
          {"n_gpus", run.n_gpus},
          {"framework", run.framework},
          {"profile", row.profile.empty() ? Json() : Json(row.profile)},
          {"precision", run.precision},
          {"model", run.model},
          {"tp", run.layout.tensor},
          {"pp", run.layout.pipeline},
          {"dp", run.layout.data},
          {"measured_s", number(seconds(run.step_time))},
          {"simulated_s", number(seconds(row.simulated))},
          {"error_pct", number(row.error_pct)},
          {"measured_peak_GiB", number(run.peak_memory_gib)},
          {"simulated_peak_GiB", number(row.simulated_peak_gib)},
          {"memory_error_pct", number(row.memory_error_pct)},
          {"memory_metric", run.memory_metric.empty() ? Json() : Json(run.memory_metric)},
          {"skipped", row.skipped.empty() ? Json() : Json(row.skipped)}};
}

}  // namespace

std::string training_run_table(const TrainingRunValidation& validation) {
  std::string text = text_line("%-7s %-16s %-19s %-5s %-28s %9s %5s %5s %5s %9s %9s %8s %8s", "id",
                               "GPU", "profile", "prec.", "model", "tpxppxdp", "seq", "micro",
                               "batch", "meas. s", "sim. s", "error %", "memory %");
  std::map<std::string, int> skipped;
  for (const TrainingRunScore& row : validation.rows) {
    if (row.skipped.empty()) {
      text += table_row(row);
    } else {
      ++skipped[reason_of(row.skipped)];
    }
  }
  text += "\n";
  for (const auto& [reason, rows] : skipped)
    text += "skipped " + std::to_string(rows) + (rows == 1 ? " row: " : " rows: ") + reason + "\n";
  if (!skipped.empty()) text += "\n";
  for (const ErrorGroup& group : validation.groups)
    text += error_line(group.by + " " + group.key, group.errors);
  text += "\n" + error_line("all step times", validation.summary);
  if (validation.memory.n > 0) text += error_line("all peaks", validation.memory);
  return text + kDefinition + "\n";
}

std::string training_run_json(const TrainingRunValidation& validation) {
  Json rows = Json::array();
  for (const TrainingRunScore& row : validation.rows) rows.push_back(json_of(row));
  Json groups = Json::array();
  for (const ErrorGroup& group : validation.groups) groups.push_back(error_json(group));
  const Json document = {{"schema", "tessera.training_runs/1"},
                         {"definition", kDefinition},
                         {"rows", rows},
                         {"summary", error_json(validation.summary)},
                         {"memory_summary", error_json(validation.memory)},
                         {"groups", groups}};
  return document.dump(2) + "\n";
}

std::string training_run_csv(const TrainingRunValidation& validation) {
  std::string text =
      "id,gpu,n_gpus,framework,profile,precision,model,tp,pp,dp,measured_s,simulated_s,error_pct,"
      "measured_peak_GiB,simulated_peak_GiB,memory_error_pct,memory_metric,skipped\n";
  for (const TrainingRunScore& row : validation.rows) {
    const TrainingRun& run = row.run;
    const auto field = [](const std::optional<double>& value, const char* format) {
      return value ? figure_cell(value, format) : std::string();
    };
    for (const std::string& value :
         {csv_field(run.id), csv_field(run.gpu), std::to_string(run.n_gpus),
          csv_field(run.framework), row.profile, run.precision, csv_field(run.model),
          std::to_string(run.layout.tensor), std::to_string(run.layout.pipeline),
          std::to_string(run.layout.data), field(seconds(run.step_time), "%.6f"),
          field(seconds(row.simulated), "%.6f"), field(row.error_pct, "%.2f"),
          field(run.peak_memory_gib, "%.4f"), field(row.simulated_peak_gib, "%.4f"),
          field(row.memory_error_pct, "%.2f"), run.memory_metric}) {
      text += value + ",";
    }
    text += csv_field(row.skipped) + "\n";
  }
  return text;
}

}  // namespace tessera
