#include "predictor/training/train.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <spdlog/spdlog.h>

#include "hw/units/replace_file.h"
#include "predictor/half/tensor_study.h"
#include "predictor/weights.h"
#include "sim/cli/commands.h"
#include "sim/cli/home.h"
#include "sim/cli/output.h"
#include "sim/validate/ablation_study.h"
#include "sim/validate/tensor_study_text.h"
#include "sim/validate/training_text.h"

namespace tessera {
namespace {

struct TrainCommandOptions {
  std::string data_folder;
  std::string weights_file;  ///< empty: the shipped weights and their tables
  std::string table_folder;
  bool ablations = false;
  TrainOptions training;
  bool half = false;  ///< the half-precision products instead of the FP32 kernels
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

/// `name` in the folder of the data, or in its folder kernels/.
std::filesystem::path kernel_file(const std::filesystem::path& folder, const char* name) {
  const std::filesystem::path inner = folder / "kernels" / name;
  return std::filesystem::exists(inner) ? inner : folder / name;
}

void run_half(const TrainCommandOptions& options) {
  const TensorData data =
      read_tensor_rows(kernel_file(options.data_folder, "tensor_core.csv"), shipped_gpu_lookup());
  const TensorTraining training = train_tensor_gemm(data);
  const std::string text = tensor_study_text(training.weights, study_tensor_gemm(data, training));
  const bool shipped = options.weights_file.empty();
  const std::filesystem::path file = shipped ? home() / "predictor" / "weights" / "tensor_gemm.pb"
                                             : std::filesystem::path(options.weights_file);
  std::filesystem::path folder = options.table_folder;
  if (shipped && folder.empty()) folder = home() / "results" / "predictor";
  save_tensor_weights(training.weights, file);
  print(text);
  if (!folder.empty()) replace_file(folder / "tensor_gemm.txt", text);
  spdlog::info("wrote {}", file.string());
}

void run_train(const TrainCommandOptions& options) {
  if (options.half) return run_half(options);
  const auto begin = std::chrono::steady_clock::now();
  const TrainingSet set = read_training_set(options.data_folder, shipped_gpu_lookup());
  const Folds folds(set.gpus, FoldDepth::two);
  const std::vector<ModelRun> runs = model_runs(options.data_folder);
  std::optional<RuleStudy> study;
  if (!runs.empty()) study = study_rules(folds, runs, shipped_catalog());
  TrainOptions training = options.training;
  if (study) training.rule = study->shipped();
  const PredictorWeights weights = train(set, folds, training);
  const std::vector<Table> tables = tables_of(set, folds, weights, study);
  const bool shipped = options.weights_file.empty();
  std::filesystem::path file = options.weights_file;
  if (shipped) file = weights_file();
  std::filesystem::path folder = options.table_folder;
  if (shipped && folder.empty()) folder = shipped_tables();
  save_weights(weights, file);
  publish(tables, folder);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  spdlog::info("trained in {:.1f} s, wrote {}", elapsed.count(), file.string());
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
  command->add_option("--out", options->weights_file,
                      "where the weights go (default: the shipped weights, and the tables into "
                      "results/predictor)");
  command->add_option("--tables", options->table_folder, "folder for the tables that are printed");
  command->add_option("--seed", options->training.seed, "of the neural form")
      ->capture_default_str();
  command->add_flag("--ablations", options->ablations,
                    "instead of training, show what each ingredient buys and what the seeds "
                    "change (results/predictor/ablations.txt); about a minute");
  command->add_flag("--half", options->half,
                    "train the half-precision products on tensor_core.csv instead, and write "
                    "tensor_gemm.pb and tensor_gemm.txt");
  command->callback(
      [options] { options->ablations ? run_ablations(*options) : run_train(*options); });
}

}  // namespace tessera
