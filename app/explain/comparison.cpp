#include "app/explain/comparison.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "hw/units/formatted.h"

namespace tessera {
namespace {

using ComparisonJson = nlohmann::ordered_json;

constexpr double kBytesPerGib = 1024.0 * 1024 * 1024;
constexpr const char* kComparisonDefinition =
    "phases: what the compute stream of a GPU does, mean over GPUs; they add up to the step time, "
    "so their differences add up to that of the steps. classes: time in kernels, which says "
    "nothing "
    "of overlap. A trace tells fewer of both apart, so a simulation is summed up to its terms: "
    "forward with the loss, optimizer with what prepares it, idle = bubble, host and waiting; "
    "kernels by their names. communication of a trace's classes: all NCCL kernels, hidden or not.";

std::vector<ComparedTime> side_by_side(const NamedTimes& a, const NamedTimes& b) {
  std::vector<ComparedTime> rows;
  for (const auto& [name, seconds] : a) rows.push_back({name, seconds, std::nullopt});
  for (const auto& [name, seconds] : b) {
    const auto found = std::ranges::find(rows, name, &ComparedTime::name);
    if (found == rows.end()) {
      rows.push_back({name, std::nullopt, seconds});
    } else {
      found->b = seconds;
    }
  }
  return rows;
}

std::vector<ComparedSetup> differing_setup(const StepProfile& a, const StepProfile& b) {
  std::vector<ComparedSetup> differing;
  for (const auto& [name, value] : a.setup) {
    const auto found =
        std::ranges::find_if(b.setup, [&](const auto& entry) { return entry.first == name; });
    if (found != b.setup.end() && found->second != value)
      differing.push_back({name, value, found->second});
  }
  return differing;
}

std::string cell(const std::optional<double>& seconds) {
  if (!seconds) return "-";
  return formatted("%.3f", *seconds * 1e3);
}

std::string percent_of(double difference, double base) {
  if (base <= 0) return "";
  return formatted("%+.1f", 100 * difference / base);
}

std::string rows_text(const std::vector<ComparedTime>& rows) {
  std::string text;
  for (const ComparedTime& row : rows) {
    if (row.a.value_or(0) == 0 && row.b.value_or(0) == 0) continue;
    text += text_line("  %-24s %12s %12s %+12.3f %9s", row.name.c_str(), cell(row.a).c_str(),
                      cell(row.b).c_str(), row.difference() * 1e3,
                      percent_of(row.difference(), row.a.value_or(0)).c_str());
  }
  return text;
}

std::string head_text(const std::string& title) {
  return text_line("\n%-26s %12s %12s %12s %9s", title.c_str(), "A ms", "B ms", "B - A ms", "%");
}

std::string setup_text(const StepComparison& comparison) {
  if (comparison.setup.empty()) return "";
  std::string text = "\ndiffers\n";
  for (const ComparedSetup& entry : comparison.setup)
    text += text_line("  %-24s %s -> %s", entry.name.c_str(), entry.a.c_str(), entry.b.c_str());
  return text;
}

std::string memory_text(const StepComparison& comparison) {
  const auto& a = comparison.a.peak_memory_bytes;
  const auto& b = comparison.b.peak_memory_bytes;
  if (!a || !b) return "";
  return text_line("peak memory %.2f GiB -> %.2f GiB, %+.2f GiB", *a / kBytesPerGib,
                   *b / kBytesPerGib, (*b - *a) / kBytesPerGib);
}

const char* name_of(ProfileKind kind) {
  return kind == ProfileKind::trace ? "trace" : "simulated";
}

/// "A: step.json (trace; no ProfilerStep: ...)".
std::string side_text(const char* side, const StepProfile& profile) {
  return std::string(side) + ": " + profile.name + " (" + name_of(profile.kind) +
         (profile.note.empty() ? "" : "; " + profile.note) + ")\n";
}

ComparisonJson json_of(const StepProfile& profile) {
  const auto number = [](const std::optional<double>& value) {
    return value ? ComparisonJson(*value) : ComparisonJson();
  };
  ComparisonJson setup = ComparisonJson::object();
  for (const auto& [name, value] : profile.setup) setup[name] = value;
  return {{"name", profile.name},
          {"kind", name_of(profile.kind)},
          {"note", profile.note},
          {"step_time_s", profile.step_time_s},
          {"tokens_per_s", number(profile.tokens_per_s)},
          {"peak_memory_bytes", number(profile.peak_memory_bytes)},
          {"setup", setup}};
}

ComparisonJson json_of(const std::vector<ComparedTime>& rows) {
  ComparisonJson list = ComparisonJson::array();
  const auto number = [](const std::optional<double>& value) {
    return value ? ComparisonJson(*value) : ComparisonJson();
  };
  for (const ComparedTime& row : rows)
    list.push_back({{"name", row.name},
                    {"a_s", number(row.a)},
                    {"b_s", number(row.b)},
                    {"difference_s", row.difference()}});
  return list;
}

}  // namespace

StepComparison compare_steps(const StepProfile& a, const StepProfile& b) {
  const bool with_trace = a.kind == ProfileKind::trace || b.kind == ProfileKind::trace;
  StepComparison comparison{.a = with_trace ? in_terms_of_traces(a) : a,
                            .b = with_trace ? in_terms_of_traces(b) : b};
  comparison.phases = side_by_side(comparison.a.phases, comparison.b.phases);
  comparison.classes = side_by_side(comparison.a.classes, comparison.b.classes);
  std::ranges::stable_sort(comparison.classes, std::ranges::greater{},
                           [](const ComparedTime& row) { return std::abs(row.difference()); });
  comparison.setup = differing_setup(a, b);
  if (a.step_time_s > 0) comparison.difference_pct = 100 * (b.step_time_s / a.step_time_s - 1);
  return comparison;
}

std::string comparison_text(const StepComparison& comparison, bool notes) {
  const StepProfile& a = comparison.a;
  const StepProfile& b = comparison.b;
  return side_text("A", a) + side_text("B", b) + "\n" +
         text_line("step time %.3f ms -> %.3f ms, %+.1f %%", a.step_time_s * 1e3,
                   b.step_time_s * 1e3, comparison.difference_pct) +
         memory_text(comparison) + setup_text(comparison) + head_text("time of a GPU, by phase") +
         rows_text(comparison.phases) + rows_text({{"total", a.step_time_s, b.step_time_s}}) +
         head_text("kernels, by class") + rows_text(comparison.classes) + "\n" +
         (notes ? kComparisonDefinition : "what the terms mean: --notes") + "\n";
}

std::string comparison_json(const StepComparison& comparison) {
  ComparisonJson setup = ComparisonJson::array();
  for (const ComparedSetup& entry : comparison.setup)
    setup.push_back({{"name", entry.name}, {"a", entry.a}, {"b", entry.b}});
  const ComparisonJson document{{"schema", "tessera.comparison/1"},
                                {"a", json_of(comparison.a)},
                                {"b", json_of(comparison.b)},
                                {"difference_pct", comparison.difference_pct},
                                {"setup", setup},
                                {"phases", json_of(comparison.phases)},
                                {"classes", json_of(comparison.classes)},
                                {"definition", kComparisonDefinition}};
  return document.dump(2, ' ', false, ComparisonJson::error_handler_t::replace) + '\n';
}

}  // namespace tessera
