#include "lab/validate/resolved_rows.h"

#include "hw/units/fnv1a.h"
#include "hw/units/input_error.h"
#include "lab/validate/bad_rows.h"
#include "lab/validate/row_scenario.h"
#include "predictor/gpu/gpu_overlay.h"
#include "sim/config/load.h"
#include "sim/config/scenario_source.h"

namespace tessera {
namespace {

std::string row_name(const std::string& id, const std::string& where) {
  return id.empty() ? line_name(where) : id;
}

void add(const char* name, double value, std::string& text) {
  text += (text.empty() ? "" : " ") + std::string(name) + "=" + exact_text(value);
}

std::string measured_of(const TrainingRun& run) {
  std::string text = run.scenario.empty() ? "" : "scenario=" + run.scenario;
  if (run.step_time) add("step_time_s", run.step_time->value(), text);
  if (run.peak_memory_gib) add("peak_memory_GiB", *run.peak_memory_gib, text);
  if (run.outcome == RunOutcome::out_of_memory)
    text += (text.empty() ? "" : " ") + std::string("outcome=oom");
  return text;
}

std::string measured_of(const ModelRun& run) {
  std::string text;
  if (run.measured) add("step_ms", 1e3 * run.measured->value(), text);
  return text;
}

template <class Run>
ResolvedRow resolved_row(std::string id, const Run& run, const RowResolution<Run>& resolution) {
  ResolvedRow row;
  row.id = std::move(id);
  row.measured = measured_of(run);
  try {
    row.settings = resolution.settings_of(run);
    const Scenario scenario = resolution.scenario_of(run);
    row.hash = hash_text(fnv1a(identifying_bytes(scenario)));
    row.yaml = resolved_yaml(scenario);
  } catch (const InputError& error) {
    row.skipped = without_place(error.what(), run.where);
  }
  return row;
}

ResolvedRow skipped_row(std::string id, std::string reason) {
  ResolvedRow row;
  row.id = std::move(id);
  row.skipped = std::move(reason);
  return row;
}

}  // namespace

std::vector<ResolvedRow> resolve_rows(const TrainingRuns& runs,
                                      const RowResolution<TrainingRun>& resolution) {
  std::vector<ResolvedRow> rows;
  for (const TrainingRun& run : runs.runs)
    rows.push_back(resolved_row(row_name(run.id, run.where), run, resolution));
  for (const SkippedRun& run : runs.skipped)
    rows.push_back(skipped_row(row_name(run.id, run.where), run.reason));
  return rows;
}

std::vector<ResolvedRow> resolve_rows(const std::vector<ModelRun>& runs,
                                      const RowResolution<ModelRun>& resolution) {
  std::vector<ResolvedRow> rows;
  for (const ModelRun& run : runs) {
    const std::string id = line_name(run.where);
    rows.push_back(run.fault.empty() ? resolved_row(id, run, resolution)
                                     : skipped_row(id, run.fault));
  }
  return rows;
}

std::string hash_lines(const std::vector<ResolvedRow>& rows) {
  std::string text;
  for (const ResolvedRow& row : rows)
    text += row.id + " " + (row.skipped.empty() ? row.hash : "skipped: " + row.skipped) + "\n";
  return text;
}

std::string setting_lines(const std::vector<ResolvedRow>& rows) {
  std::string text;
  for (const ResolvedRow& row : rows) {
    text += "# " + row.id + (row.measured.empty() ? "" : " " + row.measured) + "\n";
    if (!row.skipped.empty()) text += "# skipped: " + row.skipped + "\n";
    for (const std::string& setting : row.settings) text += setting + "\n";
  }
  return text;
}

std::string scenario_documents(const std::vector<ResolvedRow>& rows) {
  std::string text;
  for (const ResolvedRow& row : rows) {
    text += "---\n# " + row.id + "\n";
    text += row.skipped.empty() ? row.yaml : "# skipped: " + row.skipped + "\n";
  }
  return text;
}

}  // namespace tessera
