#include "lab/validate/runs/training_run_text.h"

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "hw/units/formatted.h"
#include "lab/validate/error_text.h"
#include "lab/validate/studies/ranking_text.h"
#include "sim/config/files/csv.h"
#include "sim/scenario/names.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDefinition =
    "error = simulated / measured - 1 of the step time; mean over the absolute values of the rows "
    "that were simulated and measured. Peaks: allocated, reserved or "
    "of the device (smi), of the first rank, the last or the fullest, as the row says. Fits: what "
    "the fullest GPU needs, CUDA context and NCCL included, is no more than it has. 80 % interval: "
    "as uncertain as kernel times, communication, host and sources of measurements are.";

std::optional<double> seconds(const std::optional<Seconds>& time) {
  if (!time) return std::nullopt;
  return time->value();
}

std::string layout_text(const ParallelLayout& layout) {
  return std::to_string(layout.tensor) + "x" + std::to_string(layout.pipeline) + "x" +
         std::to_string(layout.data);
}

std::string interval_cell(const std::optional<Bounds>& interval) {
  if (!interval) return "-";
  return figure_cell(interval->low, "%.4f") + ".." + figure_cell(interval->high, "%.4f");
}

std::string table_row(const TrainingRunScore& row) {
  const TrainingRun& run = row.run;
  return text_line(
      "%-7s %-16s %-19s %-5s %-28s %9s %5lld %5lld %5lld %9s %9s %19s %8s %8s %4s", run.id.c_str(),
      run.gpu.c_str(), row.profile.c_str(), run.precision.c_str(),
      (run.model + " L" + std::to_string(run.layers) + " h" + std::to_string(run.hidden)).c_str(),
      layout_text(run.layout).c_str(), static_cast<long long>(run.sequence_length),
      static_cast<long long>(run.micro_batch), static_cast<long long>(run.global_batch),
      figure_cell(seconds(run.step_time), "%.4f").c_str(),
      figure_cell(seconds(row.simulated), "%.4f").c_str(), interval_cell(row.interval).c_str(),
      figure_cell(row.error_pct, "%+.1f").c_str(),
      figure_cell(row.memory_error_pct, "%+.1f").c_str(), row.fits.value_or(true) ? "yes" : "no");
}

/// Without profile, precision, batch and interval.
std::string narrow_row(const TrainingRunScore& row) {
  const TrainingRun& run = row.run;
  return text_line("%-9.9s %-15.15s %-19.19s %9.9s %8s %8s %6s", run.id.c_str(), run.gpu.c_str(),
                   (run.model + " L" + std::to_string(run.layers)).c_str(),
                   layout_text(run.layout).c_str(),
                   figure_cell(seconds(run.step_time), "%.4g").c_str(),
                   figure_cell(seconds(row.simulated), "%.4g").c_str(),
                   figure_cell(row.error_pct, "%+.1f").c_str());
}

std::string narrow_lines(const TrainingRunValidation& validation) {
  std::string text = text_line("%-9s %-15s %-19s %9s %8s %8s %6s", "id", "GPU", "model", "tpxppxdp",
                               "meas. s", "sim. s", "err. %");
  for (const TrainingRunScore& row : validation.rows)
    if (row.skipped.empty()) text += narrow_row(row);
  return text;
}

/// How many of the measured rows are expressed, by source, and what holds over sources.
std::string source_lines(const TrainingRunValidation& validation) {
  std::string text;
  for (const SourceErrors& source : validation.sources) {
    if (source.measured == 0) continue;
    text += text_line("expressed %4d of %4d measured rows of %s", source.expressed, source.measured,
                      source.source.c_str());
  }
  const SourceMeans& means = validation.over_sources;
  if (means.sources == 0) return text;
  return text +
         text_line(
             "mean over %d sources of their mean |error| %.1f %%   largest %.1f %%   largest "
             "|bias| %.1f %%",
             means.sources, means.mean_abs_error_pct, means.largest_mean_abs_error_pct,
             means.largest_abs_bias_pct);
}

Json json_of(const SourceErrors& source) {
  Json entry = {
      {"source", source.source}, {"measured", source.measured}, {"expressed", source.expressed}};
  entry.update(error_json(source.errors));
  return entry;
}

Json json_of(const SourceMeans& means) {
  const auto figure = [&](double value) { return means.sources > 0 ? Json(value) : Json(); };
  return {{"sources", means.sources},
          {"mean_abs_error_pct", figure(means.mean_abs_error_pct)},
          {"largest_mean_abs_error_pct", figure(means.largest_mean_abs_error_pct)},
          {"largest_abs_bias_pct", figure(means.largest_abs_bias_pct)}};
}

Json outcome_json(RunOutcome outcome) {
  if (outcome == RunOutcome::not_stated) return {};
  return outcome == RunOutcome::ran ? "ok" : "oom";
}

Json json_of(const TrainingRunScore& row) {
  const TrainingRun& run = row.run;
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  const auto count = [](std::int64_t value) { return value > 0 ? Json(value) : Json(); };
  const auto word = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const bool row_is_read = run.layers > 0;
  return {{"id", run.id},
          {"where", run.where},
          {"source", word(run.source)},
          {"gpu", run.gpu},
          {"n_gpus", count(run.n_gpus)},
          {"framework", run.framework},
          {"profile", word(row.profile)},
          {"precision", run.precision},
          {"model", run.model},
          {"tp", count(row_is_read ? run.layout.tensor : 0)},
          {"pp", count(row_is_read ? run.layout.pipeline : 0)},
          {"dp", count(row_is_read ? run.layout.data : 0)},
          {"seq_len", count(run.sequence_length)},
          {"micro_batch", count(run.micro_batch)},
          {"global_batch", count(run.global_batch)},
          {"recompute", row_is_read ? Json(name_of(run.recompute)) : Json()},
          {"measured_s", number(seconds(run.step_time))},
          {"simulated_s", number(seconds(row.simulated))},
          {"low_s", number(row.interval ? std::optional(row.interval->low) : std::nullopt)},
          {"high_s", number(row.interval ? std::optional(row.interval->high) : std::nullopt)},
          {"error_pct", number(row.error_pct)},
          {"outcome", outcome_json(run.outcome)},
          {"fits", row.fits ? Json(*row.fits) : Json()},
          {"device_GiB", number(row.device_gib)},
          {"measured_peak_GiB", number(run.peak_memory_gib)},
          {"simulated_peak_GiB", number(row.simulated_peak_gib)},
          {"memory_error_pct", number(row.memory_error_pct)},
          {"memory_metric", word(run.memory_metric)},
          {"approximations", run.approximations},
          {"skipped", word(row.skipped)}};
}

std::string share(int found, int all) {
  return std::to_string(found) + " of " + std::to_string(all);
}

std::string verdict_line(const FitVerdicts& verdicts) {
  std::string text;
  if (verdicts.ran > 0)
    text += "verdict 'fits': " + share(verdicts.ran_found, verdicts.ran) +
            " jobs that ran on their card";
  if (verdicts.out_of_memory > 0)
    text += std::string(text.empty() ? "" : ", ") + "verdict 'does not fit': " +
            share(verdicts.out_of_memory_found, verdicts.out_of_memory) +
            " jobs that were out of memory";
  if (const auto accuracy = verdicts.balanced_accuracy_pct())
    text += ", balanced accuracy " + figure_cell(accuracy, "%.1f") + " %";
  if (verdicts.peaks > 0)
    text += std::string(text.empty() ? "" : "; ") + share(verdicts.fit_in_less, verdicts.peaks) +
            " peaks below 0.95 of the measured one";
  return text.empty() ? text : text + "\n";
}

std::string memory_lines(const TrainingRunValidation& validation) {
  std::string text;
  for (const VerdictGroup& group : validation.verdict_groups)
    text += group.model + ": " + verdict_line(group.verdicts);
  for (const PeakGroup& group : validation.peak_groups) {
    text += error_line("peaks " + group.metric + " " + group.source, group.errors);
    text += "  " + verdict_line(group.verdicts);
  }
  return validation.memory.n == 0 ? text : text + error_line("all peaks", validation.memory);
}

Json json_of(const FitVerdicts& verdicts) {
  const auto accuracy = verdicts.balanced_accuracy_pct();
  return {{"ran", verdicts.ran},
          {"ran_found", verdicts.ran_found},
          {"oom", verdicts.out_of_memory},
          {"oom_found", verdicts.out_of_memory_found},
          {"balanced_accuracy_pct", accuracy ? Json(*accuracy) : Json()},
          {"peaks", verdicts.peaks},
          {"in_0.95_of_the_measured_peak", verdicts.fit_in_less}};
}

Json json_of(const std::vector<VerdictGroup>& groups) {
  Json list = Json::array();
  for (const VerdictGroup& group : groups) {
    Json entry = {{"model", group.model}};
    entry.update(json_of(group.verdicts));
    list.push_back(std::move(entry));
  }
  return list;
}

Json json_of(const AppliedCorrections& corrections) {
  if (corrections.file.empty()) return {};
  Json fields = Json::array();
  for (const AppliedCorrections::Field& field : corrections.fields)
    fields.push_back({{"id", field.id},
                      {"column", field.column},
                      {"before", field.before},
                      {"after", field.after},
                      {"reason", field.reason}});
  return {{"file", corrections.file.string()}, {"fields", fields}};
}

std::string corrections_line(const AppliedCorrections& corrections) {
  if (corrections.file.empty()) return {};
  const std::size_t count = corrections.fields.size();
  return std::to_string(count) + (count == 1 ? " field" : " fields") + " corrected by " +
         corrections.file.filename().string() + "\n";
}

std::string row_lines(const TrainingRunValidation& validation) {
  std::string text =
      text_line("%-7s %-16s %-19s %-5s %-28s %9s %5s %5s %5s %9s %9s %19s %8s %8s %4s", "id", "GPU",
                "profile", "prec.", "model", "tpxppxdp", "seq", "micro", "batch", "meas. s",
                "sim. s", "80 % interval", "error %", "memory %", "fits");
  for (const TrainingRunScore& row : validation.rows) {
    if (row.skipped.empty()) text += table_row(row);
  }
  return text;
}

/// A line per approximation with the rows that it is made in.
std::string approximate_lines(const TrainingRunValidation& validation) {
  RowsByReason rows;
  for (const TrainingRunScore& row : validation.rows) {
    if (!row.skipped.empty()) continue;
    for (const std::string& what : row.run.approximations) rows[what].push_back(row.run.id);
  }
  return (rows.empty() ? "" : "\n") + counted_rows("approximate in", rows);
}

}  // namespace

std::string training_run_table(const TrainingRunValidation& validation, bool rows,
                               TableWidth width) {
  std::string text = corrections_line(validation.corrections);
  const bool narrow = width == TableWidth::terminal;
  if (rows) text += (narrow ? narrow_lines(validation) : row_lines(validation)) + "\n";
  for (const ErrorGroup& group : validation.groups)
    text += error_line(group.by + " " + group.key, group.errors);
  if (!text.empty()) text += "\n";
  text += source_lines(validation) + ranking_text(validation.ranking);
  if (!text.empty()) text += "\n";
  text += error_line("all step times", validation.summary);
  text += memory_lines(validation) + verdict_line(validation.verdicts);
  text += std::string(kDefinition) + "\n";
  text += approximate_lines(validation);
  if (!validation.skipped.empty()) text += "\n" + skipped_lines(validation.skipped);
  return text;
}

std::string training_run_json(const TrainingRunValidation& validation) {
  Json rows = Json::array();
  for (const TrainingRunScore& row : validation.rows) rows.push_back(json_of(row));
  Json groups = Json::array();
  for (const ErrorGroup& group : validation.groups) groups.push_back(error_json(group));
  Json sources = Json::array();
  for (const SourceErrors& source : validation.sources) sources.push_back(json_of(source));
  const Json document = {{"schema", "tessera.training_runs/1"},
                         {"definition", kDefinition},
                         {"rows", rows},
                         {"summary", error_json(validation.summary)},
                         {"memory_summary", error_json(validation.memory)},
                         {"fits", json_of(validation.verdicts)},
                         {"fits_by_model", json_of(validation.verdict_groups)},
                         {"groups", groups},
                         {"sources", sources},
                         {"over_sources", json_of(validation.over_sources)},
                         {"ranking", ranking_json(validation.ranking)},
                         {"corrections", json_of(validation.corrections)},
                         {"skipped", skipped_json(validation.skipped)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

std::string csv_line(const TrainingRunScore& row) {
  const TrainingRun& run = row.run;
  const auto field = [](const std::optional<double>& value, const char* format) {
    return value ? figure_cell(value, format) : std::string();
  };
  const auto count = [](int value) { return value > 0 ? std::to_string(value) : std::string(); };
  const bool row_is_read = run.layers > 0;
  std::optional<double> low, high;
  if (row.interval) low = row.interval->low, high = row.interval->high;
  std::string text;
  for (const std::string& value : {csv_field(run.id),
                                   csv_field(run.source),
                                   csv_field(run.gpu),
                                   count(run.n_gpus),
                                   csv_field(run.framework),
                                   row.profile,
                                   csv_field(run.precision),
                                   csv_field(run.model),
                                   count(row_is_read ? run.layout.tensor : 0),
                                   count(row_is_read ? run.layout.pipeline : 0),
                                   count(row_is_read ? run.layout.data : 0),
                                   field(seconds(run.step_time), "%.6f"),
                                   field(seconds(row.simulated), "%.6f"),
                                   field(low, "%.6f"),
                                   field(high, "%.6f"),
                                   field(row.error_pct, "%.2f"),
                                   field(run.peak_memory_gib, "%.4f"),
                                   field(row.simulated_peak_gib, "%.4f"),
                                   field(row.memory_error_pct, "%.2f"),
                                   csv_field(run.memory_metric),
                                   std::string(!row.fits   ? ""
                                               : *row.fits ? "1"
                                                           : "0")})
    text += value + ",";
  return text + csv_field(row.skipped) + "\n";
}

}  // namespace

std::string training_run_csv(const TrainingRunValidation& validation) {
  std::string text =
      "id,source,gpu,n_gpus,framework,profile,precision,model,tp,pp,dp,measured_s,simulated_s,"
      "low_s,high_s,error_pct,"
      "measured_peak_GiB,simulated_peak_GiB,memory_error_pct,memory_metric,fits,skipped\n";
  for (const TrainingRunScore& row : validation.rows) text += csv_line(row);
  return text;
}

}  // namespace tessera
