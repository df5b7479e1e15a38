#include "predictor/training/train.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>

#include "predictor/gpu_effects.h"
#include "predictor/training/spread_fit.h"
#include "predictor/weights.h"
#include "sim/cli/commands.h"
#include "sim/cli/home.h"
#include "sim/cli/output.h"
#include "sim/validate/rule_study.h"

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

void debug_study(const TrainCommandOptions& options) {
  const MeasurementFile file = read_measurements(options.data_folder + "/kernels/fp32.csv");
  const std::vector<GpuData> data = training_data(file, shipped_gpu_lookup());
  auto t0 = std::chrono::steady_clock::now();
  const Folds folds(data);
  auto t1 = std::chrono::steady_clock::now();
  const Catalog catalog = shipped_catalog();
  const RuleStudy study =
      study_rules(folds, read_model_runs(options.data_folder + "/models/fp32.csv"), catalog);
  auto t2 = std::chrono::steady_clock::now();
  std::printf("folds %.1f s study %.1f s\n", std::chrono::duration<double>(t1 - t0).count(),
              std::chrono::duration<double>(t2 - t1).count());
  for (std::size_t g = 0; g < folds.size(); ++g) std::printf("%s ", folds.gpu(g).spec.id.c_str());
  std::printf("\n");
  for (const auto& c : study.candidates) {
    std::printf("%-60s", text_of(c.rule).c_str());
    for (double e : c.leave_one_out) std::printf(" %6.1f", e);
    std::printf("  mean %6.2f\n", mean_error(c.leave_one_out));
  }
  const EffectRule best = study.candidates[study.best].rule;
  double sum = 0, n = 0;
  for (const Coverage& c : leave_one_out_coverage(folds, best)) {
    std::printf("%-16s class %d coverage %.2f half width %.3f\n", c.gpu.c_str(), (int)c.of, c.share,
                c.half_width);
    sum += c.share;
    n += 1;
  }
  std::printf("coverage %.3f\n", sum / n);
  const Spreads sp = fit_spreads(folds, best, folds.size());
  for (std::size_t c = 0; c < 5; ++c)
    std::printf("class %zu rule gpu %.3f shape %.3f measured gpu %.3f shape %.3f\n", c,
                sp.by_rule[c].gpu, sp.by_rule[c].shape, sp.measured[c].gpu, sp.measured[c].shape);
  std::printf("best %s\n", text_of(study.candidates[study.best].rule).c_str());
  for (const auto& s : study.selected)
    std::printf("%s: %s %.1f\n", s.gpu.c_str(), text_of(s.rule).c_str(), s.error_pct);
  std::printf("selection adjusted %.2f\n", study.selection_adjusted_error());
  for (double e : study.measured) std::printf(" %6.1f", e);
  std::printf("\n");
}

void run_train(const TrainCommandOptions& options) {
  if (getenv("STUDY")) return debug_study(options);
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
                   "folder that holds fp32.csv, or kernels/fp32.csv")
      ->required();
  command->add_option("--out", options->weights_file, "where the weights go")
      ->capture_default_str();
  command->add_option("--seed", options->training.seed, "of the neural form")
      ->capture_default_str();
  command->callback([options] { run_train(*options); });
}

}  // namespace tessera
