#include "predictor/training/train.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>

#include "predictor/weights.h"
#include "sim/cli/commands.h"
#include "sim/cli/home.h"
#include "sim/cli/output.h"

namespace tessera {
namespace {

struct TrainCommandOptions {
  std::string data_folder;
  std::string weights_file;
  TrainOptions training;
};

/// Leave-one-GPU-out errors of the forms that were trained.
std::string logo_table(const PredictorWeights& weights) {
  char text[160];
  std::snprintf(text, sizeof text, "%-9s %-20s %-12s %8s %14s %16s\n", "form", "held-out GPU", "op",
                "rows", "mean |error| %", "median |error| %");
  std::string table = text;
  for (const LogoScore& score : weights.logo) {
    std::snprintf(text, sizeof text, "%-9s %-20s %-12s %8lld %14.1f %16.1f\n", score.form.c_str(),
                  score.gpu.c_str(), score.op.c_str(), static_cast<long long>(score.n),
                  score.mean_abs_error_pct, score.median_abs_error_pct);
    table += text;
  }
  return table;
}

void run_train(const TrainCommandOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const TrainingReport report = train(options.data_folder, options.training, shipped_gpu_lookup());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  save_weights(report.weights, options.weights_file);
  print(logo_table(report.weights));
  spdlog::info("trained in {:.1f} s, wrote {}", elapsed.count(), options.weights_file);
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto options = std::make_shared<TrainCommandOptions>();
  options->weights_file = weights_file();
  CLI::App* command = app.add_subcommand("train", "Train the kernel model on measured kernels");
  command
      ->add_option("--data", options->data_folder,
                   "folder that holds fp32.csv (and fp32_conv.csv), or kernels/fp32.csv")
      ->required();
  command->add_option("--out", options->weights_file, "where the weights go")
      ->capture_default_str();
  command->add_option("--seed", options->training.seed, "of the neural form")
      ->capture_default_str();
  command->callback([options] { run_train(*options); });
}

}  // namespace tessera
