#include "lab/validate/studies/training_text.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "hw/units/formatted.h"

namespace tessera {
namespace {

template <class Values>
void add_once(Values& values, const std::string& value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

std::string gpu_columns(const std::vector<std::string>& gpus) {
  std::string text;
  for (const std::string& gpu : gpus) text += formatted(" %15s", gpu.c_str());
  return text;
}

std::string error_columns(const std::vector<double>& errors) {
  std::string text;
  for (const double error : errors)
    text += std::isnan(error) ? formatted(" %15s", "-") : formatted(" %15.1f", error);
  return text;
}

double log_ratio_share(double log_slowdown) {
  return std::exp(-log_slowdown);
}

std::string selection_lines(const std::vector<SelectedRule>& selected) {
  std::string text;
  for (const SelectedRule& rule : selected)
    text += text_line("%-16s %-48s %6.1f", rule.gpu.c_str(), text_of(rule.rule).c_str(),
                      rule.error_pct);
  return text + text_line("mean %66.2f\n", mean_error(selected));
}

std::string_view name_of(SpreadClass spread_class) {
  switch (spread_class) {
    case SpreadClass::linear:
      return "linear";
    case SpreadClass::batched:
      return "bmm";
    case SpreadClass::elementwise:
      return "elementwise";
    case SpreadClass::softmax:
      return "softmax";
    case SpreadClass::layer_norm:
      return "layer_norm";
    case SpreadClass::convolution:
      break;
  }
  return "conv2d";
}

}  // namespace

std::string kernel_logo_table(const PredictorWeights& weights,
                              const std::vector<std::string>& anomalous_linear) {
  std::vector<std::string> forms, ops, gpus;
  std::map<std::string, double> errors;
  for (const LogoScore& score : weights.logo) {
    add_once(forms, score.form);
    add_once(ops, score.op);
    add_once(gpus, score.gpu);
    errors[score.form + "/" + score.op + "/" + score.gpu] = score.mean_abs_error_pct;
  }
  std::string text =
      formatted("%-20s %-11s", "op", "form") + gpu_columns(gpus) + formatted(" %8s\n", "mean");
  std::string sound_sessions;
  for (const std::string& op : ops) {
    for (const std::string& form : forms) {
      std::vector<double> row, sound;
      for (const std::string& gpu : gpus) {
        const auto found = errors.find(form + "/" + op + "/" + gpu);
        row.push_back(found == errors.end() ? std::nan("") : found->second);
        const bool odd = std::ranges::find(anomalous_linear, gpu) != anomalous_linear.end();
        if (!odd) sound.push_back(row.back());
      }
      if (std::isnan(mean_error(row))) continue;
      text += formatted("%-20s %-11s", op.c_str(), form.c_str()) + error_columns(row) +
              formatted(" %8.1f\n", mean_error(row));
      if (op.starts_with("linear") && !anomalous_linear.empty())
        sound_sessions +=
            formatted("%-20s %-11s mean %.1f\n", op.c_str(), form.c_str(), mean_error(sound));
    }
  }
  if (sound_sessions.empty()) return text;
  std::string left_out;
  for (const std::string& gpu : anomalous_linear) left_out += (left_out.empty() ? "" : ", ") + gpu;
  return text + "\nwithout " + left_out +
         ", whose linear rows are anomalous (under half of the rate of its own batched products) "
         "and whose long ones are not trained on:\n" +
         sound_sessions;
}

std::string effects_table(const PredictorWeights& weights) {
  std::string text = formatted("%-16s %10s %10s %12s %9s %11s %10s %10s\n", "GPU", "linear", "bmm",
                               "elementwise", "softmax", "layer_norm", "limit", "reached");
  for (const TrainedGpu& gpu : weights.gpus) {
    const GpuEffect& effect = gpu.effect;
    text += formatted("%-16s %10.3f %10.3f %12.2f %9.2f %11.2f %10.2f %10.2f\n", effect.gpu.c_str(),
                      effect.gemm_slowdown, effect.batched_slowdown,
                      log_ratio_share(effect.bandwidth_slowdown[0]),
                      log_ratio_share(effect.bandwidth_slowdown[1]),
                      log_ratio_share(effect.bandwidth_slowdown[2]), effect.sustained_flops / 1e12,
                      gpu.reached_flops / 1e12);
  }
  return text +
         "linear, bmm: log time against the shared model; elementwise, softmax, layer_norm: share "
         "of peak bandwidth; limit: power-limited GEMM rate of its own session, reached: rate of "
         "good shapes for 5 ms and longer [TFLOP/s]\n";
}

std::string coverage_table(const std::vector<Coverage>& coverage, const Spreads& spreads) {
  std::string text =
      formatted("%-16s %-12s %11s %20s\n", "held-out GPU", "class", "inside, %", "interval, +-log");
  double inside = 0;
  for (const Coverage& entry : coverage) {
    inside += entry.share / static_cast<double>(coverage.size());
    text += formatted("%-16s %-12s %11.0f %20.2f\n", entry.gpu.c_str(),
                      std::string(name_of(entry.of)).c_str(), 100 * entry.share, entry.half_width);
  }
  text += formatted("mean %36.1f\n\n", 100 * inside);
  text +=
      formatted("%-12s %22s %22s\n", "spread (log)", "by rule, GPU, shape", "measured, GPU, shape");
  for (std::size_t c = 0; c < kSpreadClasses; ++c)
    text +=
        formatted("%-12s %13.3f %8.3f %13.3f %8.3f\n",
                  std::string(name_of(static_cast<SpreadClass>(c))).c_str(), spreads.by_rule[c].gpu,
                  spreads.by_rule[c].shape, spreads.measured[c].gpu, spreads.measured[c].shape);
  return text;
}

namespace {

/// Every run with the error of both predictions, and how many of their intervals hold it.
std::string study_rows(const std::vector<StudyRow>& rows) {
  std::string text =
      formatted("%-16s %-11s %-16s %5s %5s %14s %7s %14s %7s\n", "GPU", "model", "mode", "seq",
                "batch", "left out, %", "inside", "measured, %", "inside");
  double left_out = 0, measured = 0;
  for (const StudyRow& row : rows) {
    text +=
        formatted("%-16s %-11s %-16s %5lld %5lld %+14.1f %7s %+14.1f %7s\n", row.run.gpu.c_str(),
                  row.run.model.c_str(), row.run.mode.c_str(),
                  static_cast<long long>(row.run.seq_len), static_cast<long long>(row.run.batch),
                  row.left_out_error_pct, row.left_out_covered ? "yes" : "no",
                  row.measured_error_pct, row.measured_covered ? "yes" : "no");
    left_out += row.left_out_covered ? 1 : 0;
    measured += row.measured_covered ? 1 : 0;
  }
  const double count = static_cast<double>(rows.size());
  return text +
         formatted("80 %% interval holds the measured step: left out %.0f %%, measured %.0f %%\n",
                   100 * left_out / count, 100 * measured / count);
}

}  // namespace

std::string rule_study_table(const RuleStudy& study) {
  std::string text = formatted("%-48s", "plain leave-one-GPU-out, rule") + gpu_columns(study.gpus) +
                     formatted(" %8s\n", "mean");
  for (const RuleScore& score : study.rules)
    text += formatted("%-48s", text_of(score.rule).c_str()) + error_columns(score.errors) +
            formatted(" %8.2f\n", mean_error(score.errors));
  text += formatted("\nbest with a limit, or median: %s; %zu configurations in all\n\n",
                    text_of(study.rules[study.best_rule].rule).c_str(), study.rules.size());
  text += "selection-adjusted: rule chosen on the other GPUs, without this one in any fit\n";
  text += selection_lines(study.selected);
  text +=
      "the same where rules without a power limit may be chosen (blind: with T4 or P4 left out, "
      "the "
      "other has no card to take its limit from)\n";
  text += selection_lines(study.selected_among_all);
  text +=
      formatted("%-48s", "power-limited GPUs, measured; pooling") + gpu_columns(study.gpus) + "\n";
  for (const RuleScore& score : study.poolings)
    text += formatted("%-48s", text_of(score.rule).c_str()) + error_columns(score.errors) + "\n";
  for (const SelectedRule& selected : study.selected_pooling)
    text += formatted("%-16s chosen on the others: pooling %.1f %27.1f\n", selected.gpu.c_str(),
                      selected.rule.session_pooling, selected.error_pct);
  text += formatted("\n%-48s", "new models on measured GPUs, shipped rule") +
          error_columns(study.measured) + formatted(" %8.2f\n\n", mean_error(study.measured));
  return text + study_rows(study.rows);
}

}  // namespace tessera
