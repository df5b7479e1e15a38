// Commands that put simulations beside measurements: validate, reproduce.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <spdlog/spdlog.h>

#include "hw/units/input_error.h"
#include "predictor/weights.h"
#include "sim/cli/commands.h"
#include "sim/cli/home.h"
#include "sim/cli/output.h"
#include "sim/cli/progress.h"
#include "sim/config/load.h"
#include "sim/formats/output_file.h"
#include "sim/html/validation_page.h"
#include "sim/scenario/names.h"
#include "sim/validate/collective_text.h"
#include "sim/validate/model_run_scenario.h"
#include "sim/validate/operator_text.h"
#include "sim/validate/training_run_text.h"
#include "sim/validate/validation_text.h"

namespace tessera {
namespace {

struct ValidateOptions {
  std::string models_file;
  std::string operators_file;
  std::string runs_file;
  std::vector<std::string> only;
  std::vector<std::string> overlay_files;
  int jobs = 0;  ///< 0: as many as there are processors
  std::string collectives_file;
  std::string calibrate_on;
  std::string leave_out;
  std::string constants;
  std::string format;
  std::string report_file;
  std::string form;
  std::optional<double> tolerance_pct;
};

int processor_count() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

void print_validation(const ModelValidation& validation, const std::string& format) {
  print(format == "json"  ? validation_json(validation)
        : format == "csv" ? validation_csv(validation)
                          : validation_table(validation));
}

/// Where no row could be compared, nothing speaks for the model.
bool misses(const ErrorSummary& errors, double tolerance_pct) {
  return errors.n == 0 || errors.mean_abs_error_pct > tolerance_pct;
}

void print_validation(const OperatorValidation& validation, const std::string& format) {
  print(format == "json"  ? operator_json(validation)
        : format == "csv" ? operator_csv(validation)
                          : operator_table(validation));
}

ExitCode run_operators(const ValidateOptions& options) {
  const Catalog catalog = shipped_catalog();
  const PredictorForm form = predictor_form_of(options.form);
  const auto scenario_of = [&](const ModelRun& run) { return scenario_of_run(run, form, catalog); };
  const OperatorValidation validation =
      score_operators(read_operator_runs(options.operators_file), scenario_of, shipped_weights());
  print_validation(validation, options.format);
  const bool missed = options.tolerance_pct && misses(validation.summary, *options.tolerance_pct);
  return missed ? ExitCode::out_of_tolerance : ExitCode::ok;
}

void print_validation(const TrainingRunValidation& validation, const std::string& format) {
  print(format == "json"  ? training_run_json(validation)
        : format == "csv" ? training_run_csv(validation)
                          : training_run_table(validation));
}

/// By GPU. An overlay that has no effect would be mistaken for one that has.
std::map<std::string, GpuOverlay> overlays_of(const std::vector<std::string>& files,
                                              const TrainingRuns& runs, const Catalog& catalog) {
  std::map<std::string, GpuOverlay> overlays;
  for (const std::string& file : files) {
    const GpuOverlay overlay = load_overlay(file, catalog);
    if (std::ranges::find(runs.runs, overlay.gpu, &TrainingRun::gpu) == runs.runs.end())
      throw InputError({file, "is an overlay of " + overlay.gpu + ", of which no row is simulated",
                        "remove the overlay, or calibrate a GPU of the rows"});
    if (!overlays.emplace(overlay.gpu, overlay).second)
      throw InputError({file, "is a second overlay of " + overlay.gpu, "keep one"});
  }
  return overlays;
}

TrainingRunValidation score_runs(const ValidateOptions& options) {
  const Catalog catalog = shipped_catalog();
  const PredictorForm form = predictor_form_of(options.form);
  const FrameworkAliases aliases = framework_aliases(catalog);
  std::vector<RowFilter> filters;
  for (const std::string& text : options.only) filters.push_back(parse_row_filter(text));
  const TrainingRuns runs = read_training_runs(options.runs_file, filters);
  const std::map<std::string, GpuOverlay> overlays =
      overlays_of(options.overlay_files, runs, catalog);
  const auto scenario_of = [&](const TrainingRun& run) {
    Scenario scenario = scenario_of_training_run(run, aliases, catalog);
    scenario.predictor_form = form;
    if (const auto own = overlays.find(run.gpu); own != overlays.end())
      scenario.overlays.push_back(own->second);
    return scenario;
  };
  Progress progress("runs");
  return score_training_runs(runs, scenario_of, shipped_weights(),
                             options.jobs > 0 ? options.jobs : processor_count(),
                             [&](std::size_t done, std::size_t all) { progress.show(done, all); });
}

ExitCode run_training_runs(const ValidateOptions& options) {
  const TrainingRunValidation validation = score_runs(options);
  print_validation(validation, options.format);
  if (!options.report_file.empty())
    write_output_file(options.report_file,
                      validation_page(validation, options.runs_file, TESSERA_VERSION));
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
      score_collectives(read_collective_runs(options.collectives_file), scoring, shipped_catalog());
  print(options.format == "json"  ? collective_json(validation)
        : options.format == "csv" ? collective_csv(validation)
                                  : collective_table(validation));
  const bool missed = options.tolerance_pct && misses(validation.summary, *options.tolerance_pct);
  return missed ? ExitCode::out_of_tolerance : ExitCode::ok;
}

ModelValidation score_runs_of_models(const ValidateOptions& options) {
  const Catalog catalog = shipped_catalog();
  const PredictorForm form = predictor_form_of(options.form);
  const auto scenario_of = [&](const ModelRun& run) { return scenario_of_run(run, form, catalog); };
  return score_models(read_model_runs(options.models_file), scenario_of, shipped_weights(),
                      processor_count());
}

ExitCode run_validate(const ValidateOptions& options) {
  if (!options.runs_file.empty()) return run_training_runs(options);
  if (!options.collectives_file.empty()) return run_collectives(options);
  if (!options.operators_file.empty()) return run_operators(options);
  const ModelValidation validation = score_runs_of_models(options);
  print_validation(validation, options.format);
  const bool missed = options.tolerance_pct && misses(validation.summary, *options.tolerance_pct);
  return missed ? ExitCode::out_of_tolerance : ExitCode::ok;
}

std::filesystem::path published_runs(const std::string& study) {
  return home() / "results" / "validation" / (study + "_published.csv");
}

/// Writes the tables that docs/accuracy.md is made from: those of every study, and with a file of
/// measured steps the ones in 16 bit that the pages speak of.
ExitCode reproduce_all(ValidateOptions options, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  options.models_file = published_runs("neusight");
  const ModelValidation models = score_runs_of_models(options);
  write_output_file(folder / "neusight.txt", validation_table(models));
  const bool missed = options.tolerance_pct && misses(models.summary, *options.tolerance_pct);
  if (missed) return ExitCode::out_of_tolerance;
  if (options.runs_file.empty()) return ExitCode::ok;
  options.only = {"family=gpt,llama,mpt", "precision=fp16,bf16"};
  const TrainingRunValidation validation = score_runs(options);
  write_output_file(folder / "training_runs.txt", training_run_table(validation));
  return validation.failed > 0 ? ExitCode::internal : ExitCode::ok;
}

void add_common_options(CLI::App& command, ValidateOptions& options) {
  add_format_option(command, options.format, {"table", "json", "csv"});
  add_form_option(command, options.form);
  command.add_option(
      "--tolerance", options.tolerance_pct,
      "exit with 5 where the mean absolute error is above this many percent or unknown");
}

}  // namespace

void add_validate_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = app.add_subcommand("validate", "Simulate measured runs and print the errors");
  CLI::Option_group* files = command->add_option_group("files", "what was measured");
  files->add_option("--models", options->models_file, "whole-model runs (CSV, docs/validation.md)");
  files->add_option("--operators", options->operators_file,
                    "operators timed alone (CSV, docs/validation.md)");
  files->add_option("RUNS", options->runs_file, "training steps (CSV, docs/validation.md)");
  command->add_option("--only", options->only,
                      "rows of RUNS whose column holds a value (dp=1, precision=fp16,bf16) or a "
                      "part (source~vTrain)");
  command->add_option("--overlay", options->overlay_files,
                      "RUNS: measured effects of their GPUs (tessera calibrate gpu), one per GPU");
  command->add_option("--report", options->report_file, "RUNS: write a self-contained HTML report");
  command->add_option("--jobs", options->jobs, "simulations of RUNS at a time; default: processors")
      ->check(CLI::Range(1, 1024));
  files->add_option("--collectives", options->collectives_file,
                    "collectives timed alone (CSV, docs/collectives.md)");
  files->require_option(1);
  command->add_option(
      "--calibrate-on", options->calibrate_on,
      "collectives: rows to fit to, as all or column=value,...; none is scored on a "
      "fit that has seen it");
  command
      ->add_option("--leave-out", options->leave_out,
                   "collectives: what else the fit of a row must not have seen")
      ->check(CLI::IsMember({"size", "system", "gpu"}));
  command
      ->add_option("--constants", options->constants,
                   "collectives: of the model, NCCL's own, or those before any fit")
      ->check(CLI::IsMember({"shipped", "nccl", "unfitted"}));
  add_common_options(*command, *options);
  command->callback([options, &exit_code] { exit_code = run_validate(*options); });
}

void add_reproduce_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<ValidateOptions>();
  auto study = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("reproduce", "Repeat published measurements");
  auto folder = std::make_shared<std::string>();
  CLI::Option_group* what = command->add_option_group("what", "what is repeated");
  what->add_option("STUDY", *study, "neusight: single-GPU and 4-GPU runs of its artifact")
      ->check(CLI::IsMember({"neusight"}));
  CLI::Option* all =
      what->add_option("--all", *folder,
                       "write the tables of docs/accuracy.md into a folder, as results/validation");
  what->require_option(1);
  command
      ->add_option("--runs", options->runs_file,
                   "--all: also of these training steps (CSV, docs/validation.md)")
      ->needs(all);
  command
      ->add_option("--jobs", options->jobs, "simulations of --runs at a time; default: processors")
      ->check(CLI::Range(1, 1024));
  add_common_options(*command, *options);
  command->callback([options, study, folder, &exit_code] {
    if (!folder->empty()) {
      exit_code = reproduce_all(*options, *folder);
      return;
    }
    options->models_file = published_runs(*study);
    exit_code = run_validate(*options);
  });
}

}  // namespace tessera
