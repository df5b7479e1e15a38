#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "app/expect/run_check.h"
#include "hw/units/formatted.h"
#include "hw/units/text.h"
#include "sim/config/files/csv.h"

namespace tessera {
namespace {

using ExpectJson = nlohmann::ordered_json;

/// The fewest digits that read back to the last bit.
std::string digits_of(Seconds time) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, time.value()).ptr};
}

std::string percent_text(double share) {
  return formatted("%+.2f %%", 100 * share);
}

/// "exposed_tensor +12.3 ms"; without phases the largest one: "largest: backward".
std::string phase_text(const RunCheck& check) {
  if (const auto moved = check.moved()) {
    const Seconds change = moved->change();
    return std::string(label_of(moved->phase)) + (change < Seconds(0) ? " -" : " +") +
           to_short_text(std::max(change, -change));
  }
  const auto all = time_categories();
  const auto largest = std::ranges::max_element(
      all, {}, [&](TimeCategory category) { return check.phases[category]; });
  return "no phases known; largest: " + std::string(label_of(*largest));
}

ExpectJson phases_json(const TimeBreakdown& phases) {
  ExpectJson json = ExpectJson::object();
  for (const TimeCategory category : time_categories())
    json[std::string(label_of(category))] = phases[category].value();
  return json;
}

ExpectJson check_json(const RunCheck& check, double tolerance) {
  const auto or_null = [](const auto& value) {
    return value ? ExpectJson(*value) : ExpectJson(nullptr);
  };
  const auto moved = check.moved();
  const auto& expected = check.run.step_time;
  return {{"row", check.run.where},
          {"scenario", check.run.scenario},
          {"settings", check.run.settings},
          {"expected_s", expected ? ExpectJson(expected->value()) : ExpectJson(nullptr)},
          {"simulated_s", check.step_time.value()},
          {"change", or_null(check.change())},
          {"within", check.within(tolerance)},
          {"moved_phase", moved ? ExpectJson(label_of(moved->phase)) : ExpectJson(nullptr)},
          {"moved_s", moved ? ExpectJson(moved->change().value()) : ExpectJson(nullptr)},
          {"phases_s", phases_json(check.phases)},
          {"approximations", check.run.step.approximations}};
}

}  // namespace

std::string table_text(const std::vector<RunCheck>& checks, double tolerance) {
  std::string text;
  text += formatted("%-34s %10s %10s %9s\n", "run", "expected", "simulated", "change");
  std::size_t outside = 0, unknown = 0;
  for (const RunCheck& check : checks) {
    const auto& expected = check.run.step_time;
    text += formatted("%-34.34s %10s %10s %9s%s\n", check.run.scenario.c_str(),
                      expected ? to_short_text(*expected).c_str() : "-",
                      to_short_text(check.step_time).c_str(),
                      expected ? percent_text(*check.change()).c_str() : "-",
                      check.within(tolerance) ? "" : "  <--");
    if (!check.run.settings.empty()) text += "  " + check.run.settings + "\n";
    unknown += expected ? 0 : 1;
    if (check.within(tolerance)) continue;
    ++outside;
    text += "  " + check.run.where + ": moved: " + phase_text(check) + "\n";
  }
  const std::size_t known = checks.size() - unknown;
  text += formatted("%zu of %zu runs within %g %%", known - outside, known, 100 * tolerance);
  if (unknown > 0) text += "; " + std::to_string(unknown) + " without step_time_s";
  return text + "\n";
}

std::string json_text(const std::vector<RunCheck>& checks, double tolerance) {
  ExpectJson runs = ExpectJson::array();
  for (const RunCheck& check : checks) runs.push_back(check_json(check, tolerance));
  const bool all =
      std::ranges::all_of(checks, [&](const RunCheck& check) { return check.within(tolerance); });
  return ExpectJson{{"schema", "tessera.expect/1"},
                    {"tolerance", tolerance},
                    {"within", all},
                    {"runs", std::move(runs)}}
             .dump(2) +
         "\n";
}

std::string recorded_csv(const std::vector<RunCheck>& checks) {
  std::string text = "scenario,settings,step_time_s";
  for (const TimeCategory category : time_categories()) text += "," + phase_column(category);
  text += "\n";
  for (const RunCheck& check : checks) {
    text += csv_field(check.run.scenario) + "," + csv_field(check.run.settings) + "," +
            digits_of(check.step_time);
    for (const TimeCategory category : time_categories())
      text += "," + digits_of(check.phases[category]);
    text += "\n";
  }
  return text;
}

}  // namespace tessera
