#include "lab/predict/evaluation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "hw/units/input_error.h"
#include "lab/predict/scored_files.h"
#include "predictor/measured/kernel_csv.h"

namespace tessera {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;  ///< of text, in bytes

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool is_scored(const KernelScore& row) {
  return row.measured_us > 0 && row.skipped.empty();
}

std::vector<KernelErrorGroup> error_groups(const KernelScores& scores) {
  struct Rows {
    std::vector<double> errors;
    std::int64_t intervals = 0, held = 0;
  };
  std::map<std::pair<std::uint16_t, std::uint16_t>, Rows> rows;
  for (const KernelScore& row : scores.rows) {
    if (!is_scored(row)) continue;
    Rows& own = rows[{row.gpu, row.group}];
    const double ratio = row.predicted_us / row.measured_us;
    own.errors.push_back(100 * std::abs(ratio - 1));
    own.intervals += row.half_width > 0 ? 1 : 0;
    own.held += row.half_width > 0 && std::abs(std::log(ratio)) <= row.half_width ? 1 : 0;
  }
  std::vector<KernelErrorGroup> groups;
  for (auto& [key, own] : rows) {
    groups.push_back(error_group(scores.gpus[key.first], scores.ops[key.second], own.errors));
    if (own.intervals > 0)
      groups.back().held_pct =
          100 * static_cast<double>(own.held) / static_cast<double>(own.intervals);
  }
  return groups;
}

void refuse_if_all_skipped(const KernelScores& scores, const std::filesystem::path& csv) {
  const bool none = !scores.rows.empty() && std::ranges::none_of(scores.rows, [](const auto& row) {
    return row.skipped.empty();
  });
  if (!none) return;
  throw InputError({.where = csv.string(),
                    .what = "holds no row that can be predicted",
                    .hint = "the first says: " + scores.rows.front().skipped});
}

/// Shortest text that reads back with 6 significant digits.
void append_number(std::string& text, double value) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::general, 6);
  text.append(buffer.data(), end.ptr);
}

/// Hands `text` on where it has grown to a piece.
void hand_on(std::string& text, const TextSink& sink, std::size_t at_least = kPiece) {
  if (text.size() < at_least || text.empty()) return;
  sink(text);
  text.clear();
}

bool plain(std::string_view text) {
  return std::ranges::all_of(
      text, [](unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

void append_json_string(std::string& text, std::string_view value) {
  if (plain(value)) {
    text.append("\"").append(value).append("\"");
    return;
  }
  text += nlohmann::json(std::string(value))
              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// JSON writes numbers as the file does where both agree on how.
bool is_json_number(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || digits[0] < '0' || digits[0] > '9' || text.ends_with('.')) return false;
  const bool leading_zero =
      digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
  return !leading_zero && digits.find(".e") == digits.npos && digits.find(".E") == digits.npos &&
         parse_number<double>(text).has_value();
}

void append_json_field(std::string& text, std::string_view value) {
  if (value.empty())
    text += "null";
  else if (is_json_number(value))
    text += value;
  else
    append_json_string(text, value);
}

void append_json_row(std::string& text, const CsvFields& names, const KernelScore& row) {
  const CsvFields fields = split_fields(row.line);
  text += "{";
  for (std::size_t i = 0; i < names.count; ++i) {
    append_json_string(text, names.values[i]);
    text += ":";
    append_json_field(text, i < fields.count ? fields.values[i] : std::string_view());
    text += ",";
  }
  text += "\"predicted_us\":";
  row.skipped.empty() ? append_number(text, row.predicted_us) : void(text += "null");
  const bool known = row.skipped.empty() && row.half_width > 0;
  for (const double sign : {-1.0, 1.0}) {
    text += sign < 0 ? ",\"low_us\":" : ",\"high_us\":";
    known ? append_number(text, row.predicted_us * std::exp(sign * row.half_width))
          : void(text += "null");
  }
  text += ",\"error_pct\":";
  is_scored(row) ? append_number(text, 100 * (row.predicted_us / row.measured_us - 1))
                 : void(text += "null");
  text += ",\"predicted_as\":";
  row.predicted_as.empty() ? void(text += "null") : append_json_string(text, row.predicted_as);
  text += ",\"skipped\":";
  row.skipped.empty() ? void(text += "null") : append_json_string(text, row.skipped);
  text += "}";
}

nlohmann::ordered_json groups_json(const KernelScores& scores) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  for (const KernelErrorGroup& group : scores.groups)
    groups.push_back({{"gpu", group.gpu},
                      {"op", group.op},
                      {"n", group.n},
                      {"mean_abs_error_pct", group.mean_abs_error_pct},
                      {"median_abs_error_pct", group.median_abs_error_pct},
                      {"coverage_80_pct", group.held_pct ? nlohmann::ordered_json(*group.held_pct)
                                                         : nlohmann::ordered_json()}});
  return groups;
}

}  // namespace

KernelErrorGroup error_group(std::string gpu, std::string op, std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += error;
  return {.gpu = std::move(gpu),
          .op = std::move(op),
          .n = static_cast<std::int64_t>(errors.size()),
          .mean_abs_error_pct = sum / static_cast<double>(errors.size()),
          .median_abs_error_pct = median(errors),
          .held_pct = {}};
}

KernelScores score_kernels(const std::filesystem::path& csv, const PredictorWeights& weights,
                           PredictorForm form, const GpuLookup& lookup) {
  const ScoreRequest request{csv, weights, form, lookup};
  const auto score = [&] {
    switch (format_of(csv)) {
      case KernelFileFormat::attention:
        return score_attention(request);
      case KernelFileFormat::memory_bound:
        return score_memory_bound(request);
      case KernelFileFormat::serving:
        return score_serving(request);
      case KernelFileFormat::operators:
        break;
    }
    return score_operators(request);
  };
  KernelScores scores = score();
  finish_scores(scores, csv);
  return scores;
}

void finish_scores(KernelScores& scores, const std::filesystem::path& csv) {
  std::ranges::stable_sort(scores.rows, {}, [](const KernelScore& row) { return row.line.data(); });
  refuse_if_all_skipped(scores, csv);
  scores.groups = error_groups(scores);
}

void write_predicted_csv(const KernelScores& scores, const TextSink& sink) {
  std::string text(scores.header);
  text += ",predicted_us\n";
  for (const KernelScore& row : scores.rows) {
    text.append(row.line).push_back(',');
    if (row.skipped.empty()) append_number(text, row.predicted_us);
    text.push_back('\n');
    hand_on(text, sink);
  }
  hand_on(text, sink, 0);
}

std::vector<SkippedKernel> skipped_kernels(const KernelScores& scores) {
  std::vector<SkippedKernel> skipped;
  std::size_t line = 1;
  const char* at = scores.header.data();
  for (const KernelScore& row : scores.rows) {
    line += static_cast<std::size_t>(std::count(at, row.line.data(), '\n'));
    at = row.line.data();
    if (!row.skipped.empty()) skipped.push_back({line, row.skipped});
  }
  return skipped;
}

namespace {

nlohmann::ordered_json skipped_json(const KernelScores& scores) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SkippedKernel& row : skipped_kernels(scores))
    list.push_back({{"id", "line " + std::to_string(row.line)}, {"reason", row.reason}});
  return list;
}

}  // namespace

void write_scores_json(const KernelScores& scores, const TextSink& sink) {
  const CsvFields names = split_fields(scores.header);
  std::string text = "{\n\"groups\": " + groups_json(scores).dump(2) + ",\n\"rows\": [";
  for (const KernelScore& row : scores.rows) {
    text += &row == &scores.rows.front() ? "\n" : ",\n";
    append_json_row(text, names, row);
    hand_on(text, sink);
  }
  text += "\n],\n\"skipped\": " +
          skipped_json(scores).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
          "\n}\n";
  hand_on(text, sink, 0);
}

}  // namespace tessera
