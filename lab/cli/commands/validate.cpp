// Commands that put simulations beside measurements: validate, reproduce.
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "lab/cli/commands.h"
#include "lab/cli/commands/validate_files.h"
#include "lab/validate/runs/training_run_text.h"
#include "lab/validate/validation_text.h"
#include "sim/formats/output_file.h"

namespace tessera {
namespace {

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
  if (options.runs_files.empty()) return ExitCode::ok;
  options.only = {"family=gpt,llama,mpt", "precision=fp16,bf16"};
  const TrainingRunValidation validation = score_runs(options);
  write_output_file(folder / "training_runs.txt", training_run_table(validation));
  return validation.failed > 0 ? ExitCode::internal : ExitCode::ok;
}

/// Of --baselines.
void refuse_formats(const ValidateOptions& options) {
  if (options.format != "table" || options.tolerance_pct)
    throw InputError({"--baselines", "prints a table, and is held to no tolerance",
                      "leave --format and --tolerance out"});
}

void add_common_options(CLI::App& command, ValidateOptions& options) {
  add_format_option(command, options.format, {"table", "json", "csv"});
  add_form_option(command, options.form);
  command.add_option(
      "--tolerance", options.tolerance_pct,
      "exit with 5 where the mean absolute error is above this many percent or unknown");
}

/// An option, and the kinds of files that it is for.
struct OptionUse {
  const char* name;
  bool runs, models, operators, collectives;
};
constexpr std::array kUses{OptionUse{"--only", true, false, false, false},
                           OptionUse{"--scenarios", true, true, false, false},
                           OptionUse{"--memory", true, false, false, false},
                           OptionUse{"--summary", true, false, false, false},
                           OptionUse{"--by-layout", true, false, false, false},
                           OptionUse{"--overlay", true, true, true, false},
                           OptionUse{"--report", true, false, false, false},
                           OptionUse{"--jobs", true, true, false, false},
                           OptionUse{"--corrections", true, false, false, false},
                           OptionUse{"--no-corrections", true, false, false, false},
                           OptionUse{"--ignore", true, false, false, false},
                           OptionUse{"--form", true, true, true, false},
                           OptionUse{"--calibrate-on", false, false, false, true},
                           OptionUse{"--leave-out", false, false, false, true},
                           OptionUse{"--constants", false, false, false, true}};

/// An option without effect would be mistaken for one that has some.
void refuse_unused(const CLI::App& command, const ValidateOptions& options) {
  std::vector<Problem> problems;
  for (const OptionUse& use : kUses) {
    const bool used = (use.runs && !options.runs_files.empty()) ||
                      (use.models && !options.models_file.empty()) ||
                      (use.operators && !options.operators_file.empty()) ||
                      (use.collectives && !options.collectives_file.empty());
    if (used || command.get_option(use.name)->count() == 0) continue;
    problems.push_back({use.name, "has no effect on this kind of file", "leave it out"});
  }
  const bool left_out = command.get_option("--leave-out")->count() > 0;
  if (left_out && options.calibrate_on.empty())
    problems.push_back({"--leave-out", "is for a fit", "give --calibrate-on, or leave it out"});
  if (options.by_layout && options.format != "table")
    problems.push_back(
        {"--by-layout", "is part of the table", "use --format table, or leave it out"});
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace

namespace {

void add_files(CLI::App& command, ValidateOptions& options) {
  CLI::Option_group* files = command.add_option_group("files", "what was measured");
  files->add_option("--models", options.models_file, "whole-model runs (CSV, docs/validation.md)");
  files->add_option("--operators", options.operators_file,
                    "operators timed alone (CSV, docs/validation.md)");
  files->add_option("RUNS", options.runs_files,
                    "training steps (CSV, docs/validation.md); several files are judged together");
  files->add_option("--collectives", options.collectives_file,
                    "collectives timed alone (CSV, docs/collectives.md)");
  files->add_option("--power-caps", options.power_caps_file,
                    "training under caps of the board power (CSV, docs/validation.md)");
  files->add_option("--node-power", options.node_power_file,
                    "published power of nodes (CSV, docs/validation.md)");
  files->add_option("--long-runs", options.long_runs_folder,
                    "folder of published goodput, failures and checkpoints (docs/validation.md)");
  files->require_option(1);
}

/// How steps and models are read.
void add_row_options(CLI::App* command, ValidateOptions* options) {
  command->add_option("--only", options->only,
                      "rows of RUNS whose column holds a value (dp=1, precision=fp16,bf16) or a "
                      "part (source~vTrain)");
  command->add_option("--overlay", options->overlay_files,
                      "measured effects of the rows' GPUs (tessera calibrate gpu), one per GPU");
  command->add_flag("--strict", options->strict, "a row that cannot be simulated ends the run");
  CLI::Option* corrections =
      command->add_option("--corrections", options->corrections_file,
                          "RUNS: corrected fields (CSV: id, column, value, reason); default: "
                          "RUNS_corrections.csv beside RUNS.csv");
  command->add_flag("!--no-corrections", options->correct, "RUNS: leave fields as they are")
      ->excludes(corrections);
  command->add_option("--ignore", options->ignored,
                      "RUNS: columns of your own that say nothing of the step");
  command
      ->add_option("--scenarios", options->scenarios,
                   "RUNS or --models: instead of simulating, print what each row becomes: its "
                   "settings, its scenario, or a hash of that")
      ->check(CLI::IsMember({"settings", "yaml", "hash"}));
  command->add_flag("--memory", options->memory_alone,
                    "RUNS: peaks and verdicts alone, no time is simulated");
  command->add_flag("--summary", options->summary, "RUNS: a table without a line per row");
  command->add_flag("--by-layout", options->by_layout,
                    "RUNS: also what one MFU for all layouts would miss by, and how layouts of a "
                    "model rank by GPU time; rows that simulate alike count once (table)");
  command->add_option("--report", options->report_file, "RUNS: write a self-contained HTML report");
  command
      ->add_option("--jobs", options->jobs,
                   "simulations of RUNS or --models at a time; default: processors")
      ->check(CLI::Range(1, 1024));
}

/// How collectives are fitted.
void add_collective_options(CLI::App* command, ValidateOptions* options) {
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
}

/// What `reproduce` is given besides the options of `validate`.
struct Reproduction {
  ValidateOptions options;
  std::string study, folder;
};

void add_reproduction_options(CLI::App& command, Reproduction& what) {
  CLI::Option_group* group = command.add_option_group("what", "what is repeated");
  group->add_option("STUDY", what.study, "neusight: single-GPU and 4-GPU runs of its artifact")
      ->check(CLI::IsMember({"neusight"}));
  CLI::Option* all = group->add_option(
      "--all", what.folder,
      "write the tables of docs/accuracy.md into a folder, as results/validation");
  group->require_option(1);
  command
      .add_option("--runs", what.options.runs_files,
                  "--all: also of these training steps (CSV, docs/validation.md)")
      ->needs(all);
  command
      .add_option("--jobs", what.options.jobs,
                  "simulations of --runs at a time; default: processors")
      ->check(CLI::Range(1, 1024));
  CLI::Option* baselines =
      command
          .add_option("--baselines", what.options.baseline_data,
                      "folder of measured kernels (as of train --data): a plain MLP and a "
                      "regression per operator, trained on them, beside ours and the published")
          ->excludes(all);
  command
      .add_option("--picture", what.options.picture_file, "--baselines: write them as an SVG file")
      ->needs(baselines);
}

ExitCode run_reproduction(Reproduction& what) {
  if (!what.folder.empty() && what.options.baseline_data.empty())
    return reproduce_all(what.options, what.folder);
  what.options.models_file = published_runs(what.study);
  if (what.options.baseline_data.empty()) return run_validate(what.options);
  refuse_formats(what.options);
  return run_baselines(what.options);
}

}  // namespace

void add_validate_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = app.add_subcommand("validate", "Simulate measured runs and print the errors");
  add_files(*command, *options);
  add_row_options(command, options.get());
  add_collective_options(command, options.get());
  add_common_options(*command, *options);
  command->callback([options, command, &exit_code] {
    refuse_unused(*command, *options);
    exit_code = run_validate(*options);
  });
}

void add_reproduce_command(CLI::App& app, ExitCode& exit_code) {
  auto what = std::make_shared<Reproduction>();
  CLI::App* command = app.add_subcommand("reproduce", "Repeat published measurements");
  add_reproduction_options(*command, *what);
  add_common_options(*command, what->options);
  command->callback([what, &exit_code] { exit_code = run_reproduction(*what); });
}

}  // namespace tessera
