#include "lab/fit/train.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <spdlog/spdlog.h>

#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "hw/units/replace_file.h"
#include "lab/cli/commands.h"
#include "lab/cli/commands/train_attention.h"
#include "lab/cli/commands/train_tensor_gemm.h"
#include "lab/cli/commands/trained_section.h"
#include "lab/validate/studies/ablation_study.h"
#include "lab/validate/studies/training_text.h"
#include "predictor/weights/weights.h"

namespace tessera {
namespace {

struct TrainCommandOptions {
  std::string model = "fp32";
  std::string data_folder;
  std::string weights_file;  ///< empty: the shipped weights and their tables
  std::string table_folder;
  bool ablations = false;
  TrainOptions training;
};

/// A table under the name of its file.
struct Table {
  std::string name;
  std::string text;
};

std::vector<Table> tables_of(const TrainingSet& set, const Folds& folds,
                             const PredictorWeights& weights,
                             const std::optional<RuleStudy>& study) {
  std::vector<Table> tables{
      {"kernels.txt", kernel_logo_table(weights, set.anomalous_linear())},
      {"effects.txt", effects_table(weights)},
      {"coverage.txt",
       coverage_table(leave_one_out_coverage(folds, weights.rule), weights.spreads)}};
  if (study) tables.push_back({"models.txt", rule_study_table(*study)});
  return tables;
}

/// Whole-model runs choose the rule for unseen GPUs; without them the default rule stands.
std::vector<ModelRun> model_runs(const std::string& data_folder) {
  const std::filesystem::path models = std::filesystem::path(data_folder) / "models" / "fp32.csv";
  if (!std::filesystem::exists(models)) return {};
  return read_model_runs(models);
}

/// Prints the tables and keeps them in `folder`, where one is given.
void publish(const std::vector<Table>& tables, const std::filesystem::path& folder) {
  for (const Table& table : tables) {
    print(table.text + "\n");
    if (!folder.empty()) replace_file(folder / table.name, table.text);
  }
}

std::filesystem::path shipped_tables() {
  return home() / "results" / "predictor";
}

/// Repeats the fits without each ingredient; the weights stay as they are.
void run_ablations(const TrainCommandOptions& options) {
  const TrainingSet set = read_training_set(options.data_folder, shipped_gpu_lookup());
  const EffectRule rule = shipped_weights().rule;
  const auto ablations =
      study_ablations(set, model_runs(options.data_folder), shipped_catalog(), rule);
  const std::filesystem::path folder =
      options.table_folder.empty() ? shipped_tables() : std::filesystem::path(options.table_folder);
  publish({{"ablations.txt", ablation_table(ablations, study_seeds(set, rule))}}, folder);
}

void run_train(const TrainCommandOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const TrainTarget target = train_target(options.weights_file, options.table_folder);
  const TrainingSet set = read_training_set(options.data_folder, shipped_gpu_lookup());
  const Folds folds(set.gpus, FoldDepth::two);
  const std::vector<ModelRun> runs = model_runs(options.data_folder);
  std::optional<RuleStudy> study;
  if (!runs.empty()) study = study_rules(folds, runs, shipped_catalog());
  TrainOptions training = options.training;
  if (study) training.rule = study->shipped();
  const PredictorWeights weights = train(set, folds, training);
  const std::vector<Table> tables = tables_of(set, folds, weights, study);
  write_sections(weights, target.weights);
  publish(tables, target.tables);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  spdlog::info("trained in {:.1f} s", elapsed.count());
}

/// Without --out the weights that came with the program are written.
void refuse_installed(const TrainCommandOptions& options) {
  const bool tables_alone = options.ablations;
  const bool given = tables_alone ? !options.table_folder.empty() : !options.weights_file.empty();
  if (given || is_checkout()) return;
  throw InputError(
      {tables_alone ? "--tables" : "--out",
       "is not given, and " + home().string() +
           " is an installation, whose files stay as they came",
       tables_alone ? "name a folder for the table" : "name a file of your own for the weights"});
}

void run(const TrainCommandOptions& options) {
  refuse_installed(options);
  if (options.ablations) return run_ablations(options);
  if (options.model == "tensor-gemm")
    return run_train_tensor_gemm(options.data_folder, options.weights_file, options.table_folder);
  if (options.model == "attention")
    return run_train_attention(options.data_folder, options.weights_file, options.table_folder);
  run_train(options);
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto options = std::make_shared<TrainCommandOptions>();
  CLI::App* command = app.add_subcommand("train", "Train the kernel model on measured kernels");
  command
      ->add_option("--data", options->data_folder,
                   "folder that holds fp32.csv (and fp32_conv.csv), or kernels/fp32.csv; "
                   "models/fp32.csv there chooses the rule for unseen GPUs")
      ->required();
  command->add_option(
      "--out", options->weights_file,
      "weights file whose section of the model is written, the others kept (default, in a "
      "checkout: the shipped weights, and the tables into results/predictor)");
  command->add_option("--tables", options->table_folder, "folder for the tables that are printed");
  command->add_option("--seed", options->training.seed, "of the neural form")
      ->capture_default_str();
  command->add_flag("--ablations", options->ablations,
                    "instead of training, show what each ingredient buys and what the seeds "
                    "change (results/predictor/ablations.txt); about a minute");
  command
      ->add_option("--model", options->model,
                   "fp32: all FP32 kernels; tensor-gemm: products of bf16 and fp16, from "
                   "tensor_core.csv; attention: fused attention, from attention.csv")
      ->check(CLI::IsMember({"fp32", "tensor-gemm", "attention"}))
      ->capture_default_str();
  command->callback([options] { run(*options); });
}

}  // namespace tessera
