#include "lab/validate/models/operator_text.h"

#include <nlohmann/json.hpp>

#include "hw/units/formatted.h"
#include "lab/validate/error_text.h"
#include "sim/config/files/csv.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDefinition =
    "microseconds; error = predicted / measured - 1 over operators that were timed and that our "
    "graph launches; predicted as isolated calls";

double microseconds(Seconds time) {
  return time.value() * 1e6;
}

std::string percent(const std::optional<double>& error) {
  if (!error) return "-";
  return formatted("%+.1f", *error);
}

std::string header_line() {
  return text_line("  %-10s %-11s %5s %7s %12s %12s %8s   %16s %16s", "pass", "class", "ops",
                   "kernels", "measured", "predicted", "error %", "only timed", "only launched");
}

std::string sums_line(std::string_view pass, std::string_view name, const OperatorSums& sums) {
  const std::string only_timed =
      formatted("%d: %.0f", sums.only_timed, microseconds(sums.only_timed_measured));
  const std::string only_launched =
      formatted("%d: %.0f", sums.only_launched, microseconds(sums.only_launched_predicted));
  return text_line("  %-10.*s %-11.*s %5d %7d %12.1f %12.1f %8s   %16s %16s",
                   static_cast<int>(pass.size()), pass.data(), static_cast<int>(name.size()),
                   name.data(), sums.matched, sums.kernels, microseconds(sums.measured),
                   microseconds(sums.predicted), percent(sums.error_pct()).c_str(),
                   only_timed.c_str(), only_launched.c_str());
}

std::string class_lines(const std::vector<OperatorClassScore>& classes, const OperatorSums& total) {
  std::string text;
  for (const OperatorClassScore& score : classes) {
    text += sums_line(label_of(score.pass), label_of(score.operator_class), score.sums);
  }
  return text + sums_line("all", "all", total);
}

std::string count_line(const OperatorCount& count) {
  const std::string_view pass = label_of(count.pass);
  const std::string_view name = label_of(count.key.operator_class);
  return text_line("    %.*s %.*s of %lld elements: timed %d, launched %d (%.0f)",
                   static_cast<int>(pass.size()), pass.data(), static_cast<int>(name.size()),
                   name.data(), static_cast<long long>(count.key.elements), count.timed,
                   count.launched, microseconds(count.unmatched));
}

std::string run_text(const OperatorRunScore& score) {
  const ModelRun& run = score.run;
  std::string text = text_line("%s %s %s seq %lld batch %lld", run.gpu.c_str(), run.model.c_str(),
                               run.mode.c_str(), static_cast<long long>(run.seq_len),
                               static_cast<long long>(run.batch));
  if (!score.skipped.empty()) return text + "  skipped: " + score.skipped + "\n\n";
  text += header_line() + class_lines(score.classes, score.total);
  if (score.interval)
    text += text_line("  80 %% interval of the sum: %.1f to %.1f", 1e6 * score.interval->low,
                      1e6 * score.interval->high);
  if (!score.unmatched.empty()) text += "  unmatched\n";
  for (const OperatorCount& count : score.unmatched) text += count_line(count);
  return text + "\n";
}

std::string totals_line(const ErrorSummary& errors) {
  if (errors.n == 0) return "totals: nothing to compare\n";
  const auto coverage = errors.coverage_pct();
  const std::string held =
      coverage ? ", 80 % interval holds " + figure_cell(coverage, "%.0f") + " %" : "";
  return text_line(
      "totals of %d runs: mean |error| %.1f %%, median %.1f %%, max %.1f %%, bias %+.1f %%%s",
      errors.n, errors.mean_abs_error_pct, errors.median_abs_error_pct, errors.max_abs_error_pct,
      errors.bias_pct, held.c_str());
}

Json json_of(const OperatorSums& sums) {
  const auto error = sums.error_pct();
  return {{"matched", sums.matched},
          {"kernels", sums.kernels},
          {"measured_us", microseconds(sums.measured)},
          {"predicted_us", microseconds(sums.predicted)},
          {"error_pct", error ? Json(*error) : Json()},
          {"only_timed", sums.only_timed},
          {"only_timed_us", microseconds(sums.only_timed_measured)},
          {"only_launched", sums.only_launched},
          {"only_launched_us", microseconds(sums.only_launched_predicted)}};
}

Json json_of(const std::vector<OperatorClassScore>& classes) {
  Json list = Json::array();
  for (const OperatorClassScore& score : classes) {
    Json entry = {{"pass", label_of(score.pass)}, {"class", label_of(score.operator_class)}};
    entry.update(json_of(score.sums));
    list.push_back(entry);
  }
  return list;
}

Json json_of(const OperatorRunScore& score) {
  const ModelRun& run = score.run;
  Json unmatched = Json::array();
  for (const OperatorCount& count : score.unmatched) {
    unmatched.push_back({{"pass", label_of(count.pass)},
                         {"class", label_of(count.key.operator_class)},
                         {"elements", count.key.elements},
                         {"contraction", count.key.contraction},
                         {"timed", count.timed},
                         {"launched", count.launched},
                         {"unmatched_us", microseconds(count.unmatched)}});
  }
  return {{"gpu", run.gpu},
          {"model", run.model},
          {"mode", run.mode},
          {"seq_len", run.seq_len},
          {"batch", run.batch},
          {"profile", score.profile.empty() ? Json() : Json(score.profile)},
          {"low_us", score.interval ? Json(1e6 * score.interval->low) : Json()},
          {"high_us", score.interval ? Json(1e6 * score.interval->high) : Json()},
          {"skipped", score.skipped.empty() ? Json() : Json(score.skipped)},
          {"total", json_of(score.total)},
          {"classes", json_of(score.classes)},
          {"unmatched", unmatched}};
}

std::string fixed(double value) {
  return formatted("%.3f", value);
}

std::string csv_line(const ModelRun& run, const OperatorClassScore& score) {
  const OperatorSums& sums = score.sums;
  const auto error = sums.error_pct();
  const std::vector<std::string> fields{csv_field(run.gpu),
                                        csv_field(run.model),
                                        csv_field(run.mode),
                                        std::to_string(run.seq_len),
                                        std::to_string(run.batch),
                                        std::string(label_of(score.pass)),
                                        std::string(label_of(score.operator_class)),
                                        std::to_string(sums.matched),
                                        std::to_string(sums.kernels),
                                        fixed(microseconds(sums.measured)),
                                        fixed(microseconds(sums.predicted)),
                                        error ? fixed(*error) : std::string(),
                                        std::to_string(sums.only_timed),
                                        fixed(microseconds(sums.only_timed_measured)),
                                        std::to_string(sums.only_launched),
                                        fixed(microseconds(sums.only_launched_predicted))};
  std::string text;
  for (const std::string& field : fields) text += (text.empty() ? "" : ",") + field;
  return text + "\n";
}

}  // namespace

std::string operator_table(const OperatorValidation& validation) {
  std::string text;
  for (const OperatorRunScore& score : validation.runs) text += run_text(score);
  for (const OperatorGpuScore& gpu : validation.gpus) {
    text += "all runs of " + gpu.gpu + "\n" + header_line();
    text += class_lines(gpu.classes, gpu.total) + "\n";
  }
  text += totals_line(validation.summary) + kDefinition + "\n";
  if (!validation.skipped.empty()) text += "\n" + skipped_lines(validation.skipped);
  return text;
}

std::string operator_json(const OperatorValidation& validation) {
  Json runs = Json::array();
  for (const OperatorRunScore& score : validation.runs) runs.push_back(json_of(score));
  Json gpus = Json::array();
  for (const OperatorGpuScore& gpu : validation.gpus) {
    gpus.push_back(
        {{"gpu", gpu.gpu}, {"total", json_of(gpu.total)}, {"classes", json_of(gpu.classes)}});
  }
  const Json document = {{"schema", "tessera.operators/1"},
                         {"definition", kDefinition},
                         {"runs", runs},
                         {"gpus", gpus},
                         {"summary", error_json(validation.summary)},
                         {"skipped", skipped_json(validation.skipped)}};
  return document.dump(2) + "\n";
}

std::string operator_csv(const OperatorValidation& validation) {
  std::string text =
      "gpu,model,mode,seq_len,batch,pass,class,matched,kernels,measured_us,predicted_us,error_pct,"
      "only_timed,only_timed_us,only_launched,only_launched_us\n";
  for (const OperatorRunScore& score : validation.runs) {
    for (const OperatorClassScore& entry : score.classes) text += csv_line(score.run, entry);
  }
  return text;
}

}  // namespace tessera
