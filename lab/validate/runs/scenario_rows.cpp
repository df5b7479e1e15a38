#include "lab/validate/runs/scenario_rows.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "hw/units/input_error.h"
#include "lab/validate/runs/training_row.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

constexpr std::array kColumns{"scenario",      "settings",    "step_time_s", "peak_memory_GiB",
                              "memory_metric", "memory_rank", "outcome",     "id",
                              "source",        "notes"};

/// The words that a column takes; an empty one where it may be empty.
struct Words {
  const char* column;
  std::vector<const char*> words;
  const char* hint;
};

void require_known_columns(const CsvTable& table, const std::vector<std::string>& ignored) {
  std::vector<Problem> problems;
  for (const std::string& column : table.columns) {
    if (std::ranges::find(kColumns, column) != kColumns.end()) continue;
    if (std::ranges::find(ignored, column) != ignored.end()) continue;
    problems.push_back({table.file.string() + ":1",
                        "column '" + column + "' beside scenario is not read",
                        "say it in settings (path=value, as after --set), or pass --ignore " +
                            column + " if it says nothing of the step"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

/// Of the scenario: what rows are listed and grouped by.
void take_facts(const Scenario& scenario, TrainingRun& run) {
  const StepOptions& step = scenario.step;
  run.gpu = scenario.cluster.node.gpu.id;
  run.n_gpus = step.layout.world_size();
  run.gpus_per_node = scenario.cluster.node.gpu_count;
  run.framework = step.framework.name;
  run.precision = name_of(step.precision);
  run.model = scenario.model.name;
  run.layers = scenario.model.layers;
  run.hidden = scenario.model.hidden;
  run.sequence_length = step.sequence_length;
  run.layout = step.layout;
  run.micro_batch = step.micro_batch;
  run.global_batch = step.global_batch;
  run.recompute = step.recompute;
  run.approximations = scenario.approximations;
}

void check_words(const TrainingRowReader& row) {
  const bool peak = row.states("peak_memory_GiB");
  for (const Words& of :
       {Words{"memory_metric", {"allocated", "reserved", "smi"}, "give allocated, reserved or smi"},
        Words{"memory_rank", {"", "0", "last"}, "give 0, last, or nothing for the fullest"},
        Words{"outcome", {"", "ok", "oom"}, "give ok or oom"}}) {
    const bool matters = peak || row.states(of.column);
    if (matters && std::ranges::find(of.words, row.text(of.column)) == of.words.end())
      row.complain(of.column, of.hint);
  }
  if (!row.states("step_time_s") && !peak && !row.states("outcome"))
    row.complain("step_time_s", "give what was measured: step_time_s, peak_memory_GiB or outcome");
  if (row.text("outcome") == "oom" && (row.states("step_time_s") || peak))
    row.complain("outcome", "a job that ran out of memory has neither a step time nor a peak");
}

TrainingRun run_of(const TrainingRowReader& row, const Catalog& catalog,
                   std::vector<Problem>& problems) {
  TrainingRun run{.where = row.where(), .id = row.text("id"), .source = source_of(row)};
  run.scenario = row.text("scenario");
  run.settings = row.words("settings");
  check_words(row);
  read_measured_figures(row, run);
  if (run.scenario.empty()) {
    row.complain("scenario", "name the scenario that was measured: an id or a file");
    return run;
  }
  try {
    take_facts(load_scenario(run.scenario, run.settings, catalog), run);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems())
      problems.push_back({run.where, problem.where + ": " + problem.what, problem.hint});
  }
  return run;
}

SkippedRun skipped_run(const TrainingRun& run, const std::vector<Problem>& problems) {
  SkippedRun skipped{run.where, run.id, run.gpu, reason_of(problems)};
  skipped.source = run.source;
  skipped.framework = run.framework;
  skipped.precision = run.precision;
  skipped.model = run.scenario;
  skipped.measured = run.step_time.has_value();
  return skipped;
}

}  // namespace

bool names_scenarios(const CsvTable& table) {
  return table.column("scenario").has_value();
}

void add_scenario_rows(const CsvTable& table, const TrainingRunReading& reading, TrainingRuns& read,
                       std::vector<Problem>& problems) {
  require_known_columns(table, reading.ignored);
  for (const CsvTable::Row& line : table.rows) {
    std::vector<Problem> of_row;
    const RowFields fields = stated_fields(table, line);
    const TrainingRowReader row(fields, table.where(line), of_row);
    TrainingRun run = run_of(row, *reading.catalog, of_row);
    if (of_row.empty())
      read.runs.push_back(std::move(run));
    else
      read.skipped.push_back(skipped_run(run, of_row));
    problems.insert(problems.end(), of_row.begin(), of_row.end());
  }
}

}  // namespace tessera
