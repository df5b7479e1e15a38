#include "lab/validate/resolved_rows.h"

#include "hw/units/fnv1a.h"
#include "hw/units/input_error.h"
#include "lab/validate/bad_rows.h"
#include "predictor/gpu/gpu_overlay.h"
#include "sim/config/load.h"
#include "sim/config/scenario_source.h"

namespace tessera {
namespace {

std::string row_name(const std::string& id, const std::string& where) {
  return id.empty() ? line_name(where) : id;
}

template <class Run, class ScenarioOf>
ResolvedRow resolved_row(std::string id, const Run& run, const ScenarioOf& scenario_of) {
  ResolvedRow row{.id = std::move(id), .hash = {}, .yaml = {}, .skipped = {}};
  try {
    const Scenario scenario = scenario_of(run);
    row.hash = hash_text(fnv1a(identifying_bytes(scenario)));
    row.yaml = resolved_yaml(scenario);
  } catch (const InputError& error) {
    row.skipped = without_place(error.what(), run.where);
  }
  return row;
}

}  // namespace

std::vector<ResolvedRow> resolve_rows(const TrainingRuns& runs,
                                      const ScenarioOfTrainingRun& scenario_of) {
  std::vector<ResolvedRow> rows;
  for (const TrainingRun& run : runs.runs)
    rows.push_back(resolved_row(row_name(run.id, run.where), run, scenario_of));
  for (const SkippedRun& run : runs.skipped)
    rows.push_back({row_name(run.id, run.where), {}, {}, run.reason});
  return rows;
}

std::vector<ResolvedRow> resolve_rows(const std::vector<ModelRun>& runs,
                                      const ScenarioOfRun& scenario_of) {
  std::vector<ResolvedRow> rows;
  for (const ModelRun& run : runs) {
    const std::string id = line_name(run.where);
    rows.push_back(run.fault.empty() ? resolved_row(id, run, scenario_of)
                                     : ResolvedRow{id, {}, {}, run.fault});
  }
  return rows;
}

std::string hash_lines(const std::vector<ResolvedRow>& rows) {
  std::string text;
  for (const ResolvedRow& row : rows)
    text += row.id + " " + (row.skipped.empty() ? row.hash : "skipped: " + row.skipped) + "\n";
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
