#include "sim/remat/io/plan_text.h"

#include <nlohmann/json.hpp>

#include "hw/units/formatted.h"
#include "hw/units/text.h"

namespace tessera::remat {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSchema = "tessera.plan/1";

double seconds(Nanoseconds time) {
  return static_cast<double>(time) * 1e-9;
}

double overhead(const PlanReport& report) {
  const Nanoseconds base = report.instance->graph.base_time();
  if (base == 0) return 0;
  return static_cast<double>(report.result.cost.time - base) / static_cast<double>(base);
}

bool below_bound(const PlanReport& report) {
  return report.request.budget < report.result.lower_bound.bytes;
}

/// With a name where the file gives one.
std::string operator_text(const Graph& graph, OpId op) {
  if (op < 0) return "the tensors kept to the end";
  std::string text = "operator " + std::to_string(op);
  if (!graph.op_name(op).empty()) text += " (" + std::string(graph.op_name(op)) + ")";
  return text;
}

ordered_json decisions_json(const Graph& graph, const Schedule& schedule) {
  ordered_json list = ordered_json::array();
  OpId next = 0;
  for (const Step& step : schedule) {
    switch (step.action) {
      case Action::compute:
        if (step.id == next) {
          ++next;
          break;
        }
        list.push_back({{"action", "recompute"},
                        {"op", step.id},
                        {"name", graph.op_name(step.id)},
                        {"before", next}});
        break;
      case Action::copy_out:
      case Action::copy_in:
        list.push_back({{"action", step.action == Action::copy_in ? "swap_in" : "swap_out"},
                        {"tensor", step.id},
                        {"op", graph.producer(step.id)},
                        {"bytes", graph.size(step.id)},
                        {"before", next}});
        break;
      default:
        break;
    }
  }
  return list;
}

ordered_json infeasible_json(const PlanReport& report) {
  const PlanResult& result = report.result;
  const Graph& graph = report.instance->graph;
  const bool proven = below_bound(report);
  ordered_json json{{"proven", proven}};
  if (proven) {
    const OpId op = result.lower_bound.op;
    json["stage"] = op < 0 ? graph.ops() : op;
    json["op"] = op < 0 ? ordered_json(nullptr) : ordered_json(op);
    json["name"] = op < 0 ? "" : std::string(graph.op_name(op));
    json["missing_bytes"] = result.lower_bound.bytes - report.request.budget;
  } else {
    json["least_peak_bytes"] = result.cost.peak;
    json["missing_bytes"] = result.cost.peak - report.request.budget;
  }
  return json;
}

std::string line(const std::string& name, const std::string& value) {
  return name + std::string(name.size() < 18 ? 18 - name.size() : 1, ' ') + value + "\n";
}

std::string percent(double ratio) {
  return formatted("%.2f %%", 100 * ratio);
}

std::string infeasible_text(const PlanReport& report) {
  const PlanResult& result = report.result;
  const Graph& graph = report.instance->graph;
  if (below_bound(report)) {
    const OpId op = result.lower_bound.op;
    return "infeasible: stage " + std::to_string(op < 0 ? graph.ops() : op) + ", " +
           operator_text(graph, op) + " with static bytes needs " +
           std::to_string(result.lower_bound.bytes) + " B, " +
           std::to_string(result.lower_bound.bytes - report.request.budget) +
           " B more than there are";
  }
  if (report.request.link && result.cost.peak <= report.request.budget)
    return "not found: host memory for " + std::to_string(result.cost.host_peak) +
           " B would be enough";
  return "not found: the lowest peak reached is " + std::to_string(result.cost.peak) + " B, " +
         std::to_string(result.cost.peak - report.request.budget) +
         " B too much; the lower bound does not rule a plan out";
}

}  // namespace

namespace {

void add_found(const PlanReport& report, ordered_json& json) {
  const PlanResult& result = report.result;
  const Graph& graph = report.instance->graph;
  json["time_s"] = seconds(result.cost.time);
  json["overhead"] = overhead(report);
  json["peak_bytes"] = result.cost.peak;
  json["certified_gap"] = result.certified_gap;
  json["time_bound_s"] = seconds(result.time_bound);
  json["recompute_s"] = seconds(result.cost.recompute);
  json["stall_s"] = seconds(result.cost.stall);
  json["copied_bytes"] = result.cost.copied;
  json["host_peak_bytes"] = result.cost.host_peak;
  const DecisionCounts counts = count_decisions(graph, result.schedule);
  json["decision_counts"] = {{"kept", counts.kept},
                             {"recompute", counts.run_again},
                             {"swap_out", counts.copied_out},
                             {"swap_in", counts.copied_in}};
  json["decisions"] = decisions_json(graph, result.schedule);
  if (!result.note.empty()) json["note"] = result.note;
}

}  // namespace

std::string plan_json(const PlanReport& report) {
  const PlanResult& result = report.result;
  const Graph& graph = report.instance->graph;
  ordered_json json{{"schema", kSchema},
                    {"graph", graph.name()},
                    {"format", report.instance->format},
                    {"planner", report.planner},
                    {"ops", graph.ops()},
                    {"tensors", graph.tensors()},
                    {"budget_bytes", report.request.budget},
                    {"static_bytes", graph.static_bytes()},
                    {"feasible", result.feasible}};
  json["time_s"] = nullptr;
  json["base_time_s"] = seconds(graph.base_time());
  json["overhead"] = nullptr;
  json["peak_bytes"] = nullptr;
  json["base_peak_bytes"] = base_peak(graph);
  if (report.instance->release_peak) json["release_peak_bytes"] = *report.instance->release_peak;
  json["lower_bound_bytes"] = result.lower_bound.bytes;
  json["certified_gap"] = nullptr;
  json["time_bound_s"] = nullptr;
  json["decisions"] = ordered_json::array();
  if (!result.feasible) {
    json["infeasible"] = infeasible_json(report);
    json["note"] = infeasible_text(report);
  } else {
    add_found(report, json);
  }
  return json.dump(2) + "\n";
}

std::string plan_table(const PlanReport& report) {
  const PlanResult& result = report.result;
  const Graph& graph = report.instance->graph;
  std::string text =
      line("graph", graph.name() + ", " + std::to_string(graph.ops()) + " operators");
  text += line("planner", report.planner);
  text += line("budget", to_short_text(Bytes(report.request.budget)));
  text += line("lower bound", to_short_text(Bytes(result.lower_bound.bytes)) + ", " +
                                  operator_text(graph, result.lower_bound.op));
  text += line("without a plan", to_short_text(Bytes(base_peak(graph))) + ", " +
                                     to_short_text(Seconds(seconds(graph.base_time()))));
  if (!result.feasible) return text + infeasible_text(report) + "\n";
  text += line("peak", to_short_text(Bytes(result.cost.peak)));
  text += line("time", to_short_text(Seconds(seconds(result.cost.time))) + ", " +
                           percent(overhead(report)) + " more");
  text += line("certified", "at most " + percent(result.certified_gap) + " above the optimum");
  const DecisionCounts counts = count_decisions(graph, result.schedule);
  text += line("decisions", std::to_string(counts.run_again) + " operators run again, " +
                                std::to_string(counts.copied_out) + " tensors to the host, " +
                                std::to_string(counts.copied_in) + " copies back");
  if (!result.note.empty()) text += line("note", result.note);
  return text;
}

}  // namespace tessera::remat
