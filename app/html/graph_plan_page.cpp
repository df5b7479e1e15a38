#include "app/html/graph_plan_page.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "app/html/page.h"
#include "app/html/provenance_data.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

/// Figures of a plan's JSON in the order of a reader's questions, with units in brackets.
constexpr std::pair<const char*, const char*> kFigures[] = {
    {"feasible", "fits"},
    {"budget_bytes", "budget [B]"},
    {"peak_bytes", "peak with the plan [B]"},
    {"base_peak_bytes", "peak without [B]"},
    {"overhead", "time added [%]"},
    {"time_s", "time with the plan [s]"},
    {"base_time_s", "time without [s]"},
    {"time_bound_s", "no plan is faster than [s]"},
    {"lower_bound_bytes", "no plan needs less than [B]"},
    {"certified_gap", "from the optimum at most [%]"},
    {"recompute_s", "computed again [s]"},
    {"stall_s", "waits for copies [s]"},
    {"copied_bytes", "copied to the host [B]"},
    {"host_peak_bytes", "peak in the host [B]"},
    {"static_bytes", "held all the time [B]"},
    {"ops", "operators"},
    {"tensors", "tensors"},
    {"graph", "graph"},
    {"format", "format"},
    {"planner", "planner"}};

constexpr std::size_t kMostDecisions = 2000;
constexpr std::size_t kMostSamples = 4000;

/// Peak of every interval between first executions, over the time of the operators without a plan.
PageJson memory_of(const remat::PlanReport& report) {
  const remat::Graph& graph = report.instance->graph;
  std::vector<remat::ByteCount> peaks;
  remat::replay(graph, report.result.schedule, report.request.link, &peaks);
  const auto ops = static_cast<std::size_t>(graph.ops());
  const std::size_t together = std::max<std::size_t>(1, (ops + kMostSamples - 1) / kMostSamples);
  std::vector<double> times;
  std::vector<remat::ByteCount> bytes;
  double time = 0;
  for (std::size_t op = 0; op < ops; ++op) {
    if (op % together == 0) {
      times.push_back(time);
      bytes.push_back(0);
    }
    bytes.back() = std::max(bytes.back(), peaks[op]);
    time += static_cast<double>(graph.time(static_cast<remat::OpId>(op))) * 1e-9;
  }
  const PageJson no_marks{
      {"begin_s", PageJson::array()}, {"end_s", PageJson::array()}, {"kind", PageJson::array()}};
  return {{"step_time_s", time},
          {"budget_bytes", report.request.budget},
          {"ranks", PageJson::array({{{"name", "over the operators, at their times without a plan"},
                                      {"static_bytes", graph.static_bytes()},
                                      {"peak_bytes", report.result.cost.peak},
                                      {"times_s", times},
                                      {"bytes", bytes},
                                      {"marks", no_marks}}})}};
}

PageJson decisions_table(const PageJson& decisions) {
  PageJson table{{"title", "Decisions"},
                 {"columns", {"action", "operator", "name", "tensor", "bytes", "before operator"}},
                 {"rows", PageJson::array()}};
  for (std::size_t i = 0; i < std::min(decisions.size(), kMostDecisions); ++i) {
    const PageJson& decision = decisions[i];
    PageJson row = PageJson::array();
    for (const char* field : {"action", "op", "name", "tensor", "bytes", "before"})
      row.push_back(decision.value(field, PageJson()));
    table["rows"].push_back(std::move(row));
  }
  if (decisions.size() > kMostDecisions)
    table["note"] = "the first " + std::to_string(kMostDecisions) + " of " +
                    std::to_string(decisions.size()) + "; --format json prints all";
  return table;
}

/// A ratio in percent where `words` say so; yes or no.
PageJson shown_value(const PageJson& value, std::string_view words) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.is_number() && words.ends_with("[%]") ? PageJson(100 * value.get<double>()) : value;
}

}  // namespace

std::string graph_plan_page(const remat::PlanReport& report, const std::string& tessera_version) {
  const PageJson plan = PageJson::parse(remat::plan_json(report));
  PageJson page{{"title", "Memory plan of the graph " + report.instance->graph.name()},
                {"summary", PageJson::array()}};
  for (const auto& [name, words] : kFigures) {
    const PageJson value = plan.value(name, PageJson());
    if (!value.is_null())
      page["summary"].push_back(
          {{"name", words}, {"value", shown_value(value, words)}, {"definition", ""}});
  }
  if (report.result.feasible) {
    page["memory"] = memory_of(report);
    page["tables"] = PageJson::array({decisions_table(plan["decisions"])});
  }
  page["provenance"] = provenance_data(tessera_version);
  return html_page(page);
}

}  // namespace tessera
