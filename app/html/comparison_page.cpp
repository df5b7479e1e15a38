#include "app/html/comparison_page.h"

#include <algorithm>

#include "app/html/page.h"
#include "app/html/provenance_data.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

PageJson milliseconds(const std::optional<double>& seconds) {
  return seconds ? PageJson(*seconds * 1e3) : PageJson();
}

PageJson table_of(const char* title, const std::vector<ComparedTime>& rows, const char* note) {
  PageJson table{{"title", title},
                 {"columns", {"", "A ms", "B ms", "B - A ms", "B - A, % of A"}},
                 {"rows", PageJson::array()},
                 {"note", note}};
  for (const ComparedTime& row : rows) {
    if (row.a.value_or(0) == 0 && row.b.value_or(0) == 0) continue;
    PageJson change;
    if (row.a.value_or(0) > 0) change = 100 * row.difference() / *row.a;
    table["rows"].push_back(
        {row.name, milliseconds(row.a), milliseconds(row.b), row.difference() * 1e3, change});
  }
  return table;
}

/// The phases of both as bars of one scale: shares of the longer step.
PageJson bars_of(const StepComparison& comparison) {
  const double longest = std::max(comparison.a.step_time_s, comparison.b.step_time_s);
  PageJson classes = PageJson::array();
  PageJson a = PageJson::array();
  PageJson b = PageJson::array();
  for (const ComparedTime& row : comparison.phases) {
    classes.push_back(row.name);
    a.push_back(longest > 0 ? row.a.value_or(0) / longest : 0.0);
    b.push_back(longest > 0 ? row.b.value_or(0) / longest : 0.0);
  }
  return {{"classes", std::move(classes)},
          {"rows",
           {{{"name", "A"}, {"shares", std::move(a)}}, {{"name", "B"}, {"shares", std::move(b)}}}}};
}

}  // namespace

std::string comparison_page(const StepComparison& comparison, const std::string& tessera_version) {
  const StepProfile& a = comparison.a;
  const StepProfile& b = comparison.b;
  PageJson page{{"title", a.name + " and " + b.name}};
  page["summary"] = PageJson::array();
  const auto add = [&](const char* name, const PageJson& value, const std::string& definition) {
    page["summary"].push_back({{"name", name}, {"value", value}, {"definition", definition}});
  };
  const auto kind = [](const StepProfile& profile) {
    const bool is_trace = profile.kind == ProfileKind::trace;
    const std::string text = is_trace ? "trace of torch.profiler" : "simulated";
    return text + (profile.note.empty() ? "" : "; " + profile.note);
  };
  add("A [ms]", a.step_time_s * 1e3, a.name + ", " + kind(a));
  add("B [ms]", b.step_time_s * 1e3, b.name + ", " + kind(b));
  add("B against A [%]", comparison.difference_pct, "difference of the step times");
  for (const ComparedSetup& entry : comparison.setup)
    add(entry.name.c_str(), entry.a + " -> " + entry.b, "");
  page["ranks"] = bars_of(comparison);
  page["tables"] =
      PageJson::array({table_of("Time of a GPU, by phase", comparison.phases,
                                "differences of the phases add up to that of the steps"),
                       table_of("Kernels, by class", comparison.classes,
                                "time in kernels, which says nothing of overlap")});
  page["provenance"] = provenance_data(tessera_version);
  return html_page(page);
}

}  // namespace tessera
