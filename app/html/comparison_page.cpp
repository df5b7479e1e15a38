#include "app/html/comparison_page.h"

#include <algorithm>
#include <cmath>

#include "app/html/drawn_step.h"
#include "app/html/page.h"
#include "app/html/provenance_data.h"
#include "sim/report/palette.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

PageJson milliseconds(const std::optional<double>& seconds) {
  return seconds ? PageJson(*seconds * 1e3) : PageJson();
}

constexpr double kShortest = 1e-9;  ///< [s] of a difference; less is rounding

/// "tensor communication" for a phase, "layer norm" for a class of kernels.
std::string phase_words(const std::string& name) {
  for (const TimeCategory category : time_categories())
    if (name == label_of(category)) return std::string(look_of(category).words);
  std::string words = name;
  std::ranges::replace(words, '_', ' ');
  return words;
}

PageJson table_of(const char* title, const std::vector<ComparedTime>& rows, const char* note) {
  PageJson table{{"title", title},
                 {"columns", {"", "A ms", "B ms", "B - A ms", "B - A, % of A"}},
                 {"rows", PageJson::array()},
                 {"note", note}};
  for (const ComparedTime& row : rows) {
    if (row.a.value_or(0) == 0 && row.b.value_or(0) == 0) continue;
    const double difference = std::abs(row.difference()) < kShortest ? 0 : row.difference();
    PageJson change;
    if (row.a.value_or(0) > 0) change = 100 * difference / *row.a;
    table["rows"].push_back({phase_words(row.name), milliseconds(row.a), milliseconds(row.b),
                             difference * 1e3, change});
  }
  return table;
}

/// The words and the colour of a phase, by the name that a result or a trace has for it.
ClassLook look_of_phase(const std::string& name) {
  for (const TimeCategory category : time_categories())
    if (name == label_of(category)) return look_of(category);
  if (name == "communication") return {name, look_of(TimeCategory::exposed_data).colour, ""};
  return {name, look_of(TimeCategory::other_idle).colour, ""};
}

/// The phases of both as bars of one scale: shares of the longer step.
PageJson bars_of(const StepComparison& comparison) {
  const double longest = std::max(comparison.a.step_time_s, comparison.b.step_time_s);
  PageJson bars{{"classes", PageJson::array()}, {"colours", PageJson::array()}};
  PageJson a = PageJson::array();
  PageJson b = PageJson::array();
  for (const ComparedTime& row : comparison.phases) {
    bars["classes"].push_back(look_of_phase(row.name).words);
    bars["colours"].push_back(look_of_phase(row.name).colour);
    a.push_back(longest > 0 ? row.a.value_or(0) / longest : 0.0);
    b.push_back(longest > 0 ? row.b.value_or(0) / longest : 0.0);
  }
  bars["rows"] = {{{"name", "A"}, {"shares", std::move(a)}},
                  {{"name", "B"}, {"shares", std::move(b)}}};
  return bars;
}

PageJson waterfall_of(const StepComparison& comparison) {
  PageJson steps = PageJson::array();
  for (const ComparedTime& row : comparison.phases) {
    const ClassLook look = look_of_phase(row.name);
    if (std::abs(row.difference()) >= kShortest)
      steps.push_back(
          {{"name", look.words}, {"seconds", row.difference()}, {"colour", look.colour}});
  }
  return {{"from", {{"name", "A"}, {"seconds", comparison.a.step_time_s}}},
          {"to", {{"name", "B"}, {"seconds", comparison.b.step_time_s}}},
          {"steps", std::move(steps)}};
}

std::string side_words(const StepProfile& profile) {
  const bool is_trace = profile.kind == ProfileKind::trace;
  return profile.name + (is_trace ? ", a trace of torch.profiler" : ", simulated") +
         (profile.note.empty() ? "" : "; " + profile.note);
}

/// `percent` of A's time; a card shows tenths.
const char* difference_words(double percent) {
  if (std::abs(percent) < 0.05) return "B is as fast as A";
  return percent > 0 ? "B takes longer" : "B is faster";
}

/// What a reader wants first: both times, the difference, memory and throughput of both.
PageJson cards_of(const StepComparison& comparison) {
  const StepProfile& a = comparison.a;
  const StepProfile& b = comparison.b;
  PageJson cards = PageJson::array();
  const auto card = [&](const char* name, const char* kind, const PageJson& value,
                        const std::string& detail) {
    cards.push_back({{"name", name}, {"kind", kind}, {"value", value}, {"detail", detail}});
  };
  card("A, step time", "seconds", a.step_time_s, side_words(a));
  card("B, step time", "seconds", b.step_time_s, side_words(b));
  card("B against A", "change", comparison.difference_pct,
       difference_words(comparison.difference_pct));
  if (a.peak_memory_bytes && b.peak_memory_bytes) {
    card("A, peak memory", "bytes", *a.peak_memory_bytes, "");
    card("B, peak memory", "bytes", *b.peak_memory_bytes, "");
  }
  return cards;
}

/// Fields of the setup in which the sides differ.
PageJson setup_of(const StepComparison& comparison) {
  PageJson table{{"title", "What differs"},
                 {"columns", {"", "A", "B"}},
                 {"rows", PageJson::array()},
                 {"note", "of what was asked for; other fields agree"}};
  for (const ComparedSetup& entry : comparison.setup)
    table["rows"].push_back({entry.name, entry.a, entry.b});
  return table;
}

}  // namespace

std::string comparison_page(const StepComparison& comparison, const std::string& tessera_version,
                            const ComparedDrawings& drawings) {
  PageJson page{{"title", comparison.a.name + " and " + comparison.b.name}};
  page["cards"] = cards_of(comparison);
  page["waterfall"] = waterfall_of(comparison);
  page["ranks"] = bars_of(comparison);
  if (!drawings.a.is_null() && !drawings.b.is_null()) {
    page["timeline"] = joined_timelines(drawings.a["timeline"], drawings.b["timeline"]);
    page["memory"] = joined_memory(drawings.a["memory"], drawings.b["memory"]);
  }
  page["tables"] =
      PageJson::array({setup_of(comparison),
                       table_of("Time of a GPU, by phase", comparison.phases,
                                "differences of the phases add up to that of the steps"),
                       table_of("Kernels, by class", comparison.classes,
                                "time in kernels, which says nothing of overlap")});
  if (comparison.setup.empty()) page["tables"].erase(0);
  page["provenance"] = provenance_data(tessera_version);
  return html_page(page);
}

}  // namespace tessera
