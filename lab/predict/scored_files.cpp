#include "lab/predict/scored_files.h"

#include <algorithm>
#include <utility>

#include "hw/units/input_error.h"
#include "predictor/measured/kernel_csv.h"

namespace tessera {
namespace {

/// Of `value` in `values`, at whose end it is put where it is new.
std::uint16_t position_of(const std::string& value, std::vector<std::string>& values) {
  const auto found = std::ranges::find(values, value);
  const auto position = static_cast<std::uint16_t>(found - values.begin());
  if (found == values.end()) values.push_back(value);
  return position;
}

}  // namespace

KernelFileFormat format_of(const std::filesystem::path& csv) {
  const std::string text = read_kernel_table(csv, "give a file of measured kernels");
  std::string header = text.substr(0, text.find('\n'));
  if (header.ends_with('\r')) header.pop_back();
  const CsvFields fields = split_fields(header);
  const auto has = [&](std::string_view column) {
    return std::find(fields.values.begin(),
                     fields.values.begin() + static_cast<std::ptrdiff_t>(fields.count),
                     column) != fields.values.begin() + static_cast<std::ptrdiff_t>(fields.count);
  };
  if (has("kv_heads") && has("seq_q")) return KernelFileFormat::attention;
  const bool serving = (has("part") && has("seq_q")) || (has("ffn") && has("top_k") && has("tp")) ||
                       has("d_conv") || has("groups") ||
                       (has("op") && has("m") && has("k") && !has("n"));
  if (serving) return KernelFileFormat::serving;
  if (has("bytes_min")) return KernelFileFormat::memory_bound;
  return KernelFileFormat::operators;
}

KernelScore& add_score(KernelScores& scores, std::string_view line, const std::string& gpu,
                       const std::string& group, double seconds) {
  return scores.rows.emplace_back(KernelScore{.line = line,
                                              .gpu = position_of(gpu, scores.gpus),
                                              .group = position_of(group, scores.ops),
                                              .measured_us = seconds * 1e6,
                                              .predicted_as = {},
                                              .skipped = {}});
}

void require_16_bit_form(PredictorForm form) {
  if (form == PredictorForm::neusight)
    throw InputError({.where = "predictor.form",
                      .what = "the form neusight has no nets for 16-bit kernels",
                      .hint = "choose the form tessera or roofline"});
}

KernelScore unread(std::string_view line, std::string reason) {
  return {.line = line, .predicted_as = {}, .skipped = std::move(reason)};
}

void fill(KernelScore& score, const std::function<Seconds()>& predict) {
  try {
    score.predicted_us = predict().value() * 1e6;
  } catch (const InputError& error) {
    score.skipped = error.problems().front().text();
  }
}

}  // namespace tessera
