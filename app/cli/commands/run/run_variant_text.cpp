#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands/run/run_options.h"
#include "hw/units/formatted.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

std::string settings_text(const VariantResult& result, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + result.settings[i].first + " " + result.settings[i].second;
  return text;
}

/// Trained by then in nine of ten runs.
bool in_time(const VariantResult& result, double deadline_days) {
  return result.goal && result.goal->hours && result.goal->reached == result.runs.seeds &&
         (deadline_days == 0 || result.goal->hours->high <= deadline_days * 24);
}

const VariantResult* cheapest(const std::vector<VariantResult>& results, double deadline_days) {
  const VariantResult* best = nullptr;
  for (const VariantResult& result : results) {
    if (!in_time(result, deadline_days) || result.dollars() <= 0) continue;
    if (best == nullptr || result.dollars() < best->dollars()) best = &result;
  }
  return best;
}

std::string goals_text(const std::vector<VariantResult>& results, double deadline_days) {
  if (!results.front().goal) return "";
  const VariantResult* best = cheapest(results, deadline_days);
  std::string text = "\ndays to tokens  9 of 10 by    dollars\n";
  for (const VariantResult& result : results) {
    std::string line = "          never                       ";
    if (result.goal->hours)
      line = formatted("%14.2f %11.2f %10.4g%c%c ", result.goal->hours->mean / 24,
                       result.goal->hours->high / 24, result.dollars(), &result == best ? '*' : ' ',
                       in_time(result, deadline_days) ? ' ' : '-');
    text += line + settings_text(result, result.settings.size()) + "\n";
  }
  if (deadline_days <= 0) return text + "* cheapest\n";
  return text + formatted("* cheapest within %g days in 9 of 10 runs, - later\n", deadline_days);
}

/// "30min" as 30 and "min"; nothing for what is no number.
std::optional<std::pair<double, std::string>> number_of(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  return std::pair(number, std::string(end));
}

/// A line of values of the last axis, for one choice of the others.
struct VariantSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< value, goodput
  std::string unit;
};

std::vector<VariantSeries> series_of(const std::vector<VariantResult>& results) {
  std::vector<VariantSeries> all;
  for (const VariantResult& result : results) {
    if (result.settings.size() < 2) return {};
    const auto number = number_of(result.settings.back().second);
    if (!number) return {};
    const std::string name = settings_text(result, result.settings.size() - 1);
    if (all.empty() || all.back().name != name)
      all.push_back({.name = name, .points = {}, .unit = number->second});
    if (all.back().unit != number->second) return {};
    all.back().points.emplace_back(number->first, result.goodput());
  }
  return all;
}

void add_crossings(const VariantSeries& a, const VariantSeries& b, const std::string& axis,
                   std::vector<std::string>& lines) {
  for (std::size_t i = 1; i < std::min(a.points.size(), b.points.size()); ++i) {
    const double before = a.points[i - 1].second - b.points[i - 1].second;
    const double after = a.points[i].second - b.points[i].second;
    if (before * after >= 0) continue;
    const double from = a.points[i - 1].first, to = a.points[i].first;
    const double at = from + (to - from) * before / (before - after);
    const std::string number = formatted("%.4g", at);
    const bool rises = to > from;
    const std::string& below = (before > 0) == rises ? a.name : b.name;
    const std::string& above = (before > 0) == rises ? b.name : a.name;
    lines.push_back(axis + " " + number + a.unit + ": below it " + below + ", above it " + above);
  }
}

Json goal_json(const VariantResult& result, double deadline_days) {
  if (!result.goal || !result.goal->hours) return nullptr;
  return {{"hours", result.goal->hours->mean},
          {"hours_9_of_10", result.goal->hours->high},
          {"dollars", result.dollars() > 0 ? Json(result.dollars()) : Json(nullptr)},
          {"in_time", in_time(result, deadline_days)}};
}

}  // namespace

std::vector<std::string> break_even_points(const std::vector<VariantResult>& results) {
  std::vector<std::string> lines;
  const std::vector<VariantSeries> all = series_of(results);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j)
      add_crossings(all[i], all[j], results.front().settings.back().first, lines);
  }
  return lines;
}

std::string variants_text(const std::vector<VariantResult>& results, double deadline_days) {
  std::string text = "effective    4 of 5 runs  goodput   stops  waits h   (shares in %)\n";
  double best = 0;
  for (const VariantResult& result : results) best = std::max(best, result.goodput());
  for (const VariantResult& result : results) {
    const RunStatistics& runs = result.runs;
    text += formatted("%9.2f  %6.2f %6.2f %8.2f%c %6.0f %8.2f  ", 100 * runs.effective_ratio.mean,
                      100 * runs.effective_ratio.low, 100 * runs.effective_ratio.high,
                      100 * result.goodput(), result.goodput() == best ? '*' : ' ', runs.stops.mean,
                      runs.waiting.mean) +
            settings_text(result, result.settings.size()) + "\n";
  }
  text += "* most training for all nodes, spares included\n";
  text += goals_text(results, deadline_days);
  constexpr std::size_t kMostLines = 12;
  std::vector<std::string> lines = break_even_points(results);
  if (!lines.empty()) text += "\nbreak-even in goodput\n";
  for (std::size_t i = 0; i < std::min(kMostLines, lines.size()); ++i) text += lines[i] + "\n";
  return text;
}

std::string variants_json(const std::vector<VariantResult>& results, double deadline_days,
                          const std::string& version) {
  Json list = Json::array();
  for (const VariantResult& result : results) {
    Json settings = Json::object();
    for (const auto& [name, value] : result.settings) settings[name] = value;
    const RunStatistics& runs = result.runs;
    list.push_back({{"settings", std::move(settings)},
                    {"effective_training_time_ratio", runs.effective_ratio.mean},
                    {"effective_training_time_ratio_80",
                     Json::array({runs.effective_ratio.low, runs.effective_ratio.high})},
                    {"goodput", result.goodput()},
                    {"mean_time_to_failure_h",
                     runs.hours_to_failure ? Json(runs.hours_to_failure->mean) : Json(nullptr)},
                    {"stops", runs.stops.mean},
                    {"waiting_h", runs.waiting.mean}});
    if (result.goal) list.back()["time_to_tokens"] = goal_json(result, deadline_days);
  }
  const VariantResult* best = cheapest(results, deadline_days);
  Json answer{{"schema", "tessera.run_variants/1"},
              {"tessera_version", version},
              {"variants", std::move(list)},
              {"break_even", break_even_points(results)}};
  if (results.front().goal)
    answer["cheapest"] = best == nullptr ? Json(nullptr) : Json(best - results.data());
  return answer.dump(2) + "\n";
}

}  // namespace tessera
