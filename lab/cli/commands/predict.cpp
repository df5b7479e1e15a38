#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "hw/units/read_file.h"
#include "lab/cli/commands.h"
#include "lab/predict/evaluation.h"
#include "lab/validate/collectives/score_communication.h"
#include "predictor/weights/weights.h"
#include "sim/config/files/text_file.h"
#include "sim/scenario/names.h"

namespace tessera {
namespace {

struct PredictOptions {
  std::string kernels_file;
  std::string weights_file;
  std::string format;
  std::string form;
  bool strict = false;  ///< a row that is skipped ends the run
};

void refuse_skipped(const KernelScores& scores, const std::string& file) {
  std::vector<Problem> problems;
  for (const SkippedKernel& row : skipped_kernels(scores))
    problems.push_back({file + ":" + std::to_string(row.line), row.reason,
                        "correct the row, or leave --strict out"});
  if (!problems.empty()) throw InputError(std::move(problems));
}

std::string error_table(const KernelScores& scores) {
  std::string table = formatted("%-20s %-26s %8s %14s %16s %6s\n", "GPU", "op", "rows",
                                "mean |error| %", "median |error| %", "held %");
  for (const KernelErrorGroup& group : scores.groups) {
    const std::string held = group.held_pct ? formatted("%.0f", *group.held_pct) : "-";
    table += formatted("%-20s %-26s %8lld %14.1f %16.1f %6s\n", group.gpu.c_str(), group.op.c_str(),
                       static_cast<long long>(group.n), group.mean_abs_error_pct,
                       group.median_abs_error_pct, held.c_str());
  }
  std::map<std::string, std::int64_t> skipped, stand_ins;
  for (const KernelScore& row : scores.rows)
    if (!row.skipped.empty())
      ++skipped[row.skipped];
    else if (!row.predicted_as.empty())
      ++stand_ins[row.predicted_as];
  if (scores.groups.empty())
    table +=
        "no row states what its call took, so none is compared; --format csv and json hold the "
        "predictions\n";
  table += "held: of 100 rows those within their 80 % interval\n";
  for (const auto& [stand_in, rows] : stand_ins)
    table += std::to_string(rows) + " rows predicted as the nearest known: " + stand_in + "\n";
  for (const auto& [reason, rows] : skipped)
    table += std::to_string(rows) + " rows skipped: " + reason + "\n";
  return table;
}

void run_predict(const PredictOptions& options) {
  check_utf8(read_whole_file(options.kernels_file, "give a file of measured kernels"),
             options.kernels_file);
  const PredictorWeights weights =
      options.weights_file.empty() ? shipped_weights() : load_weights(options.weights_file);
  const KernelScores scores =
      holds_communication(options.kernels_file)
          ? score_communication(options.kernels_file, shipped_catalog())
          : score_kernels(options.kernels_file, weights, predictor_form_of(options.form),
                          shipped_gpu_lookup());
  if (options.strict) refuse_skipped(scores, options.kernels_file);
  if (options.format == "csv")
    write_predicted_csv(scores, print);
  else if (options.format == "json")
    write_scores_json(scores, print);
  else
    print(error_table(scores));
}

}  // namespace

void add_predict_command(CLI::App& app) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* command =
      app.add_subcommand("predict", "Predict a list of kernels; print the errors where measured");
  command->add_option("--kernels", options->kernels_file, "kernels (CSV, docs/validation.md)")
      ->required();
  command->add_option("--weights", options->weights_file, "trained weights other than the shipped");
  add_format_option(*command, options->format, {"table", "json", "csv"});
  add_form_option(*command, options->form);
  command->add_flag("--strict", options->strict, "a row that cannot be predicted ends the run");
  command->callback([options] { run_predict(*options); });
}

}  // namespace tessera
