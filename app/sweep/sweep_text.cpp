#include "app/sweep/sweep_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "hw/units/formatted.h"
#include "hw/units/plain_text.h"
#include "hw/units/quantity.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownPoints = 5;
constexpr std::size_t kShownReasons = 12;
constexpr int kBarWidth = 20;

/// In the order of simulate_point().
constexpr std::array<const char*, 14> kMetricColumns = {"gpus",
                                                        "step_time_s",
                                                        "tokens_per_s",
                                                        "tokens_per_s_per_gpu",
                                                        "mfu",
                                                        "bubble_fraction",
                                                        "exposed_communication_s",
                                                        "peak_memory_bytes",
                                                        "reserved_memory_bytes",
                                                        "context_memory_bytes",
                                                        "nccl_memory_bytes",
                                                        "device_memory_bytes",
                                                        "memory_bytes",
                                                        "fits"};

/// RFC 4180.
std::string csv_cell(const std::string& given) {
  const std::string text = spreadsheet_cell(given);
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

Json metrics_of(const StoredPoint& point) {
  if (point.outcome != PointOutcome::ok) return Json::object();
  Json metrics = Json::parse(point.answer, nullptr, false);
  return metrics.is_object() ? metrics : Json::object();
}

/// Where the point's scenario is not the job it stands for.
std::vector<std::string> approximations_of(const Json& metrics) {
  return metrics.value("approximations", std::vector<std::string>());
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

std::string reason_of(const StoredPoint& point) {
  return point.outcome == PointOutcome::ok ? "" : point.answer;
}

struct FastPoint {
  double slowness = 0;  ///< negative tokens per second and GPU
  std::string line;
};

std::string point_line(const StoredPoint& point, const Json& metrics,
                       const std::vector<std::string>& columns) {
  std::string fields;
  for (std::size_t i = 0; i < columns.size() && i < point.values.size(); ++i)
    fields += "  " + columns[i].substr(columns[i].rfind('.') + 1) + "=" + point.values[i];
  return formatted(
             "%12s %10.0f %9s", to_short_text(Seconds(metrics.value("step_time_s", 0.0))).c_str(),
             metrics.value("tokens_per_s_per_gpu", 0.0),
             to_short_text(Bytes(metrics.value("device_memory_bytes", std::int64_t{0}))).c_str()) +
         fields + "\n";
}

std::string fastest_points(SweepStore& store) {
  std::vector<FastPoint> fastest;
  store.for_each_point([&](const StoredPoint& point) {
    const Json metrics = metrics_of(point);
    if (!metrics.value("fits", false)) return;
    fastest.push_back({-metrics.value("tokens_per_s_per_gpu", 0.0),
                       point_line(point, metrics, store.identity().columns)});
    std::ranges::stable_sort(fastest, {}, &FastPoint::slowness);
    if (fastest.size() > kShownPoints) fastest.pop_back();
  });
  if (fastest.empty()) return "no point fits into memory\n";
  std::string text = "most tokens per second and GPU, of those that fit:\n" +
                     formatted("%12s %10s %9s\n", "step time", "token/s/GPU", "peak");
  for (const FastPoint& point : fastest) text += point.line;
  return text;
}

/// A line for each way in which points are not the jobs they stand for.
std::string approximate_lines(SweepStore& store) {
  std::set<std::string> lines;
  store.for_each_point([&](const StoredPoint& point) {
    for (const std::string& line : approximations_of(metrics_of(point))) lines.insert(line);
  });
  std::string text;
  for (const std::string& line : lines) text += "approximate: " + line + "\n";
  return text;
}

std::string time_text(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(std::min(seconds, 1e9)));
  if (whole >= 3600)
    return formatted("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  return formatted("%lld:%02lld", whole / 60, whole % 60);
}

}  // namespace

std::string sweep_csv(SweepStore& store) {
  std::string text = "point";
  for (const std::string& column : store.identity().columns) text += "," + csv_cell(column);
  text += ",outcome,reason";
  for (const char* metric : kMetricColumns) text += std::string(",") + metric;
  text += ",approximate\n";
  store.for_each_point([&](const StoredPoint& point) {
    text += std::to_string(point.number);
    for (const std::string& value : point.values) text += "," + csv_cell(value);
    text += "," + name_of(point.outcome) + "," + csv_cell(reason_of(point));
    const Json metrics = metrics_of(point);
    for (const char* metric : kMetricColumns) {
      const auto value = metrics.find(metric);
      text += value == metrics.end() || value->is_null() ? "," : "," + value->dump();
    }
    text += "," + csv_cell(joined(approximations_of(metrics))) + '\n';
  });
  return text;
}

std::string sweep_jsonl(SweepStore& store) {
  std::string text;
  store.for_each_point([&](const StoredPoint& point) {
    Json line{{"point", point.number}};
    const std::vector<std::string>& columns = store.identity().columns;
    for (std::size_t i = 0; i < columns.size() && i < point.values.size(); ++i)
      line["fields"][columns[i]] = point.values[i];
    line["outcome"] = name_of(point.outcome);
    if (point.outcome != PointOutcome::ok) line["reason"] = reason_of(point);
    line.update(metrics_of(point));
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  });
  return text;
}

std::string sweep_counts_text(const SweepCounts& counts) {
  const std::pair<const char*, std::int64_t> lines[] = {{"simulated", counts.simulated},
                                                        {"read from the store", counts.stored},
                                                        {"left out by where", counts.left_out},
                                                        {"invalid", counts.invalid},
                                                        {"failed", counts.failed},
                                                        {"over the time limit", counts.timed_out}};
  std::string text = std::to_string(counts.total) + " points";
  for (const auto& [name, count] : lines)
    if (count > 0)
      text += std::string(text.find(':') == std::string::npos ? ": " : ", ") +
              std::to_string(count) + " " + name;
  text += '\n';
  std::vector<std::pair<std::int64_t, std::string>> reasons;
  for (const auto& [reason, count] : counts.reasons) reasons.emplace_back(-count, reason);
  std::ranges::sort(reasons);
  for (std::size_t i = 0; i < std::min(kShownReasons, reasons.size()); ++i)
    text +=
        formatted("%8lld  ", static_cast<long long>(-reasons[i].first)) + reasons[i].second + "\n";
  if (reasons.size() > kShownReasons)
    text += "          and " + std::to_string(reasons.size() - kShownReasons) + " more reasons\n";
  return text;
}

std::string sweep_table(const SweepCounts& counts, SweepStore& store) {
  return sweep_counts_text(counts) + fastest_points(store) + approximate_lines(store);
}

std::string progress_text(const SweepCounts& counts, double seconds) {
  const auto done = static_cast<double>(counts.done());
  const auto total = static_cast<double>(std::max<std::int64_t>(counts.total, 1));
  const int filled = static_cast<int>(kBarWidth * done / total);
  const std::string bar = std::string(static_cast<std::size_t>(filled), '#') +
                          std::string(static_cast<std::size_t>(kBarWidth - filled), '.');
  const double rate = seconds > 0 ? done / seconds : 0;
  std::string left = rate > 0 ? time_text((total - done) / rate) + " left" : "";
  if (counts.best > 0) left += formatted("  best %.0f tok/s/GPU", counts.best);
  return "[" + bar +
         formatted("]  %lld/%lld  %.0f %%  %.1f points/s  ", static_cast<long long>(counts.done()),
                   static_cast<long long>(counts.total), 100 * done / total, rate) +
         left;
}

}  // namespace tessera
