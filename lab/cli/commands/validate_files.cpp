#include "lab/cli/commands/validate_files.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "app/shell/home.h"
#include "app/shell/output.h"
#include "app/shell/progress.h"
#include "hw/units/input_error.h"
#include "lab/fit/train.h"
#include "lab/validate/collectives/collective_text.h"
#include "lab/validate/longrun/published_runs.h"
#include "lab/validate/models/baseline_text.h"
#include "lab/validate/models/model_run_scenario.h"
#include "lab/validate/models/operator_text.h"
#include "lab/validate/power/node_power.h"
#include "lab/validate/power/power_caps.h"
#include "lab/validate/resolved_rows.h"
#include "lab/validate/runs/training_run_text.h"
#include "lab/validate/studies/layout_study.h"
#include "lab/validate/validation_page.h"
#include "lab/validate/validation_text.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/formats/output_file.h"
#include "sim/scenario/names.h"

namespace tessera {

bool misses(const ErrorSummary& errors, double tolerance_pct) {
  return errors.n == 0 || errors.mean_abs_error_pct > tolerance_pct;
}

namespace {

int processor_count() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

template <class Run>
std::set<std::string> gpus_of(const std::vector<Run>& runs) {
  std::set<std::string> gpus;
  for (const Run& run : runs) gpus.insert(run.gpu);
  return gpus;
}

/// By GPU. An overlay that has no effect would be mistaken for one that has.
std::map<std::string, GpuOverlay> overlays_of(const std::vector<std::string>& files,
                                              const std::set<std::string>& gpus,
                                              const Catalog& catalog) {
  std::map<std::string, GpuOverlay> overlays;
  for (const std::string& file : files) {
    const GpuOverlay overlay = load_overlay(file, catalog);
    if (!gpus.contains(overlay.gpu))
      throw InputError({file, "is an overlay of " + overlay.gpu + ", of which no row is simulated",
                        "remove the overlay, or calibrate a GPU of the rows"});
    if (!overlays.emplace(overlay.gpu, overlay).second)
      throw InputError({file, "is a second overlay of " + overlay.gpu, "keep one"});
  }
  return overlays;
}

using Overlays = std::map<std::string, GpuOverlay>;

void add_overlay(const Overlays& overlays, const std::string& gpu, Scenario& scenario) {
  if (const auto own = overlays.find(gpu); own != overlays.end())
    scenario.overlays.push_back(own->second);
}

BadRows bad_rows_of(const ValidateOptions& options) {
  return options.strict ? BadRows::refuse : BadRows::skip;
}

int jobs_of(const ValidateOptions& options) {
  return options.jobs > 0 ? options.jobs : processor_count();
}

/// How --strict judges what was scored.
void judge_skipped(const ValidateOptions& options, const std::vector<SkippedRow>& skipped) {
  if (options.strict) refuse_skipped(skipped);
}

TableWidth table_width() {
  constexpr std::size_t kAllColumns = 180;
  const bool is_narrow = is_terminal() && width_of(STDOUT_FILENO) < kAllColumns;
  return is_narrow ? TableWidth::terminal : TableWidth::all_columns;
}

/// A file or a pipe gets lines as they are: `results` are such files.
std::string for_terminal(std::string text) {
  return is_terminal() ? for_people(text) : std::move(text);
}

void print_validation(const ModelValidation& validation, const std::string& format) {
  print(format == "json"  ? validation_json(validation)
        : format == "csv" ? validation_csv(validation)
                          : for_terminal(validation_table(validation, table_width())));
}

void print_validation(const OperatorValidation& validation, const std::string& format) {
  print(format == "json"  ? operator_json(validation)
        : format == "csv" ? operator_csv(validation)
                          : for_terminal(operator_table(validation)));
}

ExitCode run_operators(const ValidateOptions& options) {
  const Catalog catalog = shipped_catalog();
  const PredictorForm form = predictor_form_of(options.form);
  const std::vector<OperatorRun> runs =
      read_operator_runs(options.operators_file, bad_rows_of(options));
  std::set<std::string> gpus;
  for (const OperatorRun& run : runs) gpus.insert(run.run.gpu);
  const Overlays overlays = overlays_of(options.overlay_files, gpus, catalog);
  const auto scenario_of = [&](const ModelRun& run) {
    Scenario scenario = scenario_of_run(run, form, catalog);
    add_overlay(overlays, run.gpu, scenario);
    return scenario;
  };
  const OperatorValidation validation = score_operators(runs, scenario_of, shipped_weights());
  judge_skipped(options, validation.skipped);
  print_validation(validation, options.format);
  const bool missed = options.tolerance_pct && misses(validation.summary, *options.tolerance_pct);
  return missed ? ExitCode::out_of_tolerance : ExitCode::ok;
}

void print_validation(const TrainingRunValidation& validation, const ValidateOptions& options) {
  if (options.format == "json") return print(training_run_json(validation));
  if (options.format == "csv") return print(training_run_csv(validation));
  std::string text = training_run_table(validation, !options.summary, table_width());
  if (options.by_layout) text += layout_study_text(validation.rows);
  print(for_terminal(std::move(text)));
}

std::string joined(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) text += (text.empty() ? "" : ", ") + file;
  return text;
}

TrainingRunReading reading_of(const ValidateOptions& options) {
  TrainingRunReading reading{
      .bad_rows = bad_rows_of(options), .ignored = options.ignored, .catalog = shipped_catalog()};
  for (const std::string& text : options.only) reading.filters.push_back(parse_row_filter(text));
  if (!options.corrections_file.empty()) reading.corrections = options.corrections_file;
  reading.correct = options.correct;
  return reading;
}

TrainingRuns runs_of(const ValidateOptions& options) {
  const RowRules rules = row_rules(shipped_catalog());
  std::vector<TrainingRuns> files;
  for (const std::string& file : options.runs_files)
    files.push_back(read_training_runs(file, rules, reading_of(options)));
  TrainingRuns runs = together(std::move(files));
  if (options.memory_alone) leave_out_times(runs);
  return runs;
}

/// Builds scenarios of measured steps as the options say.
ScenarioOfTrainingRun scenarios_of(const ValidateOptions& options, const TrainingRuns& runs) {
  const Catalog catalog = shipped_catalog();
  const PredictorForm form = predictor_form_of(options.form);
  const Overlays overlays = overlays_of(options.overlay_files, gpus_of(runs.runs), catalog);
  return [=, aliases = framework_aliases(catalog)](const TrainingRun& run) {
    Scenario scenario = scenario_of_training_run(run, aliases, catalog);
    scenario.predictor_form = form;
    add_overlay(overlays, run.gpu, scenario);
    return scenario;
  };
}

}  // namespace

TrainingRunValidation score_runs(const ValidateOptions& options) {
  const TrainingRuns runs = runs_of(options);
  const ScenarioOfTrainingRun scenario_of = scenarios_of(options, runs);
  Progress progress("runs");
  const TrainingRunValidation validation =
      score_training_runs(runs, scenario_of, shipped_weights(), jobs_of(options),
                          [&](std::size_t done, std::size_t all) { progress.show(done, all); });
  judge_skipped(options, validation.skipped);
  return validation;
}

namespace {

ExitCode print_scenarios(const ValidateOptions& options, const std::vector<ResolvedRow>& rows) {
  print(options.scenarios == "yaml"       ? scenario_documents(rows)
        : options.scenarios == "settings" ? setting_lines(rows)
                                          : hash_lines(rows));
  return ExitCode::ok;
}

ExitCode run_training_runs(const ValidateOptions& options) {
  if (!options.scenarios.empty()) {
    const TrainingRuns runs = runs_of(options);
    const Catalog catalog = shipped_catalog();
    const auto settings_of = [&, aliases = framework_aliases(catalog)](const TrainingRun& run) {
      return settings_of_training_run(run, aliases, catalog);
    };
    return print_scenarios(options, resolve_rows(runs, {settings_of, scenarios_of(options, runs)}));
  }
  const TrainingRunValidation validation = score_runs(options);
  print_validation(validation, options);
  if (!options.report_file.empty())
    write_output_file(options.report_file,
                      validation_page(validation, joined(options.runs_files), TESSERA_VERSION));
  if (validation.failed > 0) {
    spdlog::error("{} simulations failed; their rows say how", validation.failed);
    return ExitCode::internal;
  }
  const bool missed = options.tolerance_pct && misses(validation.summary, *options.tolerance_pct);
  return missed ? ExitCode::out_of_tolerance : ExitCode::ok;
}

/// "column=value,column=value"; "all" sets no condition.
std::vector<std::pair<std::string, std::string>> conditions_of(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> conditions;
  if (text == "all") return conditions;
  for (const std::string& part : CLI::detail::split(text, ',')) {
    const std::size_t sign = part.find('=');
    if (sign == std::string::npos)
      throw InputError({"--calibrate-on", "\"" + part + "\"", "write all, or column=value"});
    conditions.emplace_back(part.substr(0, sign), part.substr(sign + 1));
  }
  return conditions;
}

ExitCode run_collectives(const ValidateOptions& options) {
  CollectiveScoring scoring;
  if (options.constants == "nccl") scoring.constants = ConstantsOf::nccl;
  if (options.constants == "unfitted") scoring.constants = ConstantsOf::unfitted;
  scoring.calibrate = !options.calibrate_on.empty();
  if (scoring.calibrate) scoring.calibrate_on = conditions_of(options.calibrate_on);
  scoring.leave_out = options.leave_out == "system" ? LeaveOut::system
                      : options.leave_out == "gpu"  ? LeaveOut::gpu
                                                    : LeaveOut::size;
  const CollectiveValidation validation =
      score_collectives(read_collective_runs(options.collectives_file, row_rules(shipped_catalog()),
                                             bad_rows_of(options)),
                        scoring, shipped_catalog());
  judge_skipped(options, validation.skipped);
  print(options.format == "json"  ? collective_json(validation)
        : options.format == "csv" ? collective_csv(validation)
                                  : for_terminal(collective_table(validation)));
  const bool missed = options.tolerance_pct && misses(validation.summary, *options.tolerance_pct);
  return missed ? ExitCode::out_of_tolerance : ExitCode::ok;
}

/// Builds scenarios of measured models as the options say.
ScenarioOfRun scenarios_of(const ValidateOptions& options, const std::vector<ModelRun>& runs) {
  const Catalog catalog = shipped_catalog();
  const PredictorForm form = predictor_form_of(options.form);
  const Overlays overlays = overlays_of(options.overlay_files, gpus_of(runs), catalog);
  return [=](const ModelRun& run) {
    Scenario scenario = scenario_of_run(run, form, catalog);
    add_overlay(overlays, run.gpu, scenario);
    return scenario;
  };
}

void require_table(const ValidateOptions& options, const std::string& of) {
  if (options.format == "table") return;
  throw InputError(
      {"--format", "is " + options.format + ", but " + of + " has a table alone", "leave it out"});
}

ExitCode run_node_power(const ValidateOptions& options) {
  require_table(options, "--node-power");
  const std::vector<NodePowerFigure> figures =
      score_node_power(options.node_power_file, shipped_catalog(), shipped_weights());
  print(for_terminal(node_power_table(figures)));
  std::vector<double> errors;
  for (const NodePowerFigure& figure : figures)
    if (figure.skipped.empty()) errors.push_back(figure.error_pct());
  const bool missed =
      options.tolerance_pct && misses(summarize_errors(errors), *options.tolerance_pct);
  return missed ? ExitCode::out_of_tolerance : ExitCode::ok;
}

/// Each kind of figure has its own limit.
ExitCode run_long_runs(const ValidateOptions& options) {
  require_table(options, "--long-runs");
  if (options.tolerance_pct)
    throw InputError(
        {"--tolerance", "has no effect on --long-runs: every table has its limit", "leave it out"});
  const std::vector<LongRunScore> scores =
      score_long_runs(options.long_runs_folder, shipped_catalog(), shipped_weights());
  print(for_terminal(long_run_table(scores)));
  const bool met = std::ranges::all_of(scores, [](const LongRunScore& score) {
    return std::ranges::all_of(score.figures, [&](const LongRunFigure& figure) {
      return !figure.skipped.empty() || score.is_met(figure);
    });
  });
  return met ? ExitCode::ok : ExitCode::out_of_tolerance;
}

ExitCode run_power_caps(const ValidateOptions& options) {
  require_table(options, "--power-caps");
  const std::vector<CappedRun> runs =
      predict_capped_runs(options.power_caps_file, shipped_catalog());
  print(for_terminal(capped_run_table(runs)));
  const auto missed = [&](auto error_of) {
    std::vector<double> errors;
    for (const CappedRun& run : runs) errors.push_back((run.*error_of)());
    return options.tolerance_pct && misses(summarize_errors(errors), *options.tolerance_pct);
  };
  return missed(&CappedRun::time_error_pct) || missed(&CappedRun::energy_error_pct)
             ? ExitCode::out_of_tolerance
             : ExitCode::ok;
}

}  // namespace

ModelValidation score_runs_of_models(const ValidateOptions& options) {
  const std::vector<ModelRun> runs = read_model_runs(options.models_file, bad_rows_of(options));
  const ModelValidation validation =
      score_models(runs, scenarios_of(options, runs), shipped_weights(), jobs_of(options));
  judge_skipped(options, validation.skipped);
  return validation;
}

ExitCode run_baselines(const ValidateOptions& options) {
  const TrainingSet set = read_training_set(options.baseline_data, shipped_gpu_lookup());
  std::vector<const GpuData*> gpus;
  for (const GpuData& gpu : set.gpus) gpus.push_back(&gpu);
  const ModelValidation ours = score_runs_of_models(options);
  const std::vector<ModelRun> runs = read_model_runs(options.models_file, bad_rows_of(options));
  const BaselineComparison comparison =
      score_baselines(ours, scenarios_of(options, runs), shipped_weights(), gpus, jobs_of(options));
  print(for_terminal(baseline_table(comparison)));
  if (!options.picture_file.empty())
    write_output_file(options.picture_file, baseline_picture(comparison));
  return ExitCode::ok;
}

ExitCode run_validate(const ValidateOptions& options) {
  if (!options.power_caps_file.empty()) return run_power_caps(options);
  if (!options.node_power_file.empty()) return run_node_power(options);
  if (!options.long_runs_folder.empty()) return run_long_runs(options);
  if (!options.runs_files.empty()) return run_training_runs(options);
  if (!options.collectives_file.empty()) return run_collectives(options);
  if (!options.operators_file.empty()) return run_operators(options);
  if (!options.scenarios.empty()) {
    const std::vector<ModelRun> runs = read_model_runs(options.models_file, bad_rows_of(options));
    const auto settings_of = [&](const ModelRun& run) {
      return settings_of_run(run, predictor_form_of(options.form), shipped_catalog());
    };
    return print_scenarios(options, resolve_rows(runs, {settings_of, scenarios_of(options, runs)}));
  }
  const ModelValidation validation = score_runs_of_models(options);
  print_validation(validation, options.format);
  const bool missed = options.tolerance_pct && misses(validation.summary, *options.tolerance_pct);
  return missed ? ExitCode::out_of_tolerance : ExitCode::ok;
}

}  // namespace tessera
