#include "app/html/memory_plan_page.h"

#include <algorithm>
#include <map>
#include <set>

#include "app/html/data/provenance_data.h"
#include "app/html/data/step_figures.h"
#include "app/html/page.h"
#include "hw/units/text.h"
#include "sim/report/definitions.h"
#include "sim/trace/timeline_index.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kMiB = 1024.0 * 1024;

double gib(Bytes bytes) {
  return static_cast<double>(bytes.value()) / kGiB;
}

PageJson milliseconds(const std::optional<Seconds>& time) {
  return time ? PageJson(time->value() * 1e3) : PageJson();
}

PageJson added_percent(const MemoryPlanReport& report) {
  if (!report.simulated_time || report.base_time <= Seconds(0)) return nullptr;
  return 100 * (*report.simulated_time / report.base_time - 1);
}

Bytes highest(const PlannedStep& memory, Bytes StageMemoryPlan::*peak) {
  Bytes most;
  for (const StageMemoryPlan& plan : memory.stages) most = std::max(most, plan.*peak);
  return most;
}

/// With the plan, where there is one.
template <class Add>
void add_device(const MemoryPlanReport& report, const Add& add) {
  if (!report.steps->memory.feasible()) return;
  const DeviceMemory memory = report.steps->memory.device();
  add("reserved by the allocator [GiB]", gib(memory.reserved), "");
  add("CUDA context [GiB]", gib(memory.context), "");
  add("NCCL [GiB]", gib(memory.communicators), "");
  add("needed of a GPU [GiB]", gib(memory.total()), definitions::kFits);
  add("memory of a GPU [GiB]", gib(report.steps->base.memory_capacity), "");
}

PageJson summary_of(const MemoryPlanReport& report) {
  const PlannedStep& memory = report.steps->memory;
  PageJson summary = PageJson::array();
  const auto add = [&](const char* name, const PageJson& value, std::string_view definition = "") {
    summary.push_back({{"name", name}, {"value", value}, {"definition", definition}});
  };
  add("fits", memory.feasible() ? "yes" : "no: the table of stages says why");
  add("budget [GiB]", gib(memory.budget),
      "per GPU, for what the framework's allocator holds: states, workspaces, activations");
  add("peak without a plan [GiB]", gib(highest(memory, &StageMemoryPlan::base_peak)),
      "of the fullest stage");
  add("peak with the plan [GiB]",
      memory.feasible() ? PageJson(gib(highest(memory, &StageMemoryPlan::planned_peak)))
                        : PageJson());
  add("the plan costs [%]", added_percent(report), "simulated with it over simulated without");
  add("simulated with the plan [ms]", milliseconds(report.simulated_time),
      "kernels that run again and copies among all others");
  add("step time without a plan [ms]", milliseconds(report.base_time),
      "simulated, whether or not the step fits");
  add("expected with the plan [ms]", milliseconds(report.planned_time),
      "passes in the order of the schedule, each with its planned time");
  add_device(report, add);
  add("link to host memory [GB/s]", memory.link.bytes_per_ns,
      "per direction and GPU, where all that share it copy");
  return summary;
}

PageJson stages_table(const PlannedStep& memory) {
  PageJson table{{"title", "Stages"},
                 {"columns",
                  {"stage", "in flight", "states GiB", "before GiB", "after GiB", "lower bound GiB",
                   "ops run again", "tensors swapped", "copied GiB", "pass ms", "runs again ms",
                   "waits for copies ms", "added %", "from the optimum at most %", "note"}},
                 {"rows", PageJson::array()},
                 {"note",
                  "per micro-batch and GPU; in flight: micro-batches whose activations wait; lower "
                  "bound: what any plan needs"}};
  for (const StageMemoryPlan& plan : memory.stages) {
    const bool planned = plan.needed && plan.feasible;
    const auto figure = [&](double value) { return planned ? PageJson(value) : PageJson(); };
    table["rows"].push_back(
        {plan.stage, plan.in_flight, gib(plan.static_bytes), gib(plan.base_peak),
         plan.feasible ? PageJson(gib(plan.planned_peak)) : PageJson(), gib(plan.lower_bound),
         plan.decisions.run_again, plan.decisions.copied_out, gib(plan.copied),
         milliseconds(plan.base_time), figure(plan.recompute.value() * 1e3),
         figure(plan.stall.value() * 1e3), figure(100 * (plan.planned_time / plan.base_time - 1)),
         figure(100 * plan.certified_gap), plan.feasible ? plan.note : plan.infeasible});
  }
  return table;
}

/// "layer 3.mlp.up" as "mlp.up": layers repeat.
std::string within_layer(const std::string& name) {
  const std::size_t dot = name.find('.');
  return name.starts_with("layer ") && dot != std::string::npos ? name.substr(dot + 1) : name;
}

/// A row for what has one name in all layers.
void add_decisions(const StageMemoryPlan& plan, PageJson& again, PageJson& swapped) {
  std::map<std::string, std::pair<int, double>> ops;            // runs and seconds
  std::map<std::string, std::pair<int, std::int64_t>> tensors;  // copies and bytes
  for (const ChunkMemoryPlan& chunk : plan.chunks) {
    const remat::Graph& graph = chunk.graph.graph;
    std::vector<bool> ran(static_cast<std::size_t>(graph.ops()));
    for (const remat::Step& step : chunk.schedule) {
      const auto id = static_cast<std::size_t>(step.id);
      if (step.action == remat::Action::compute && ran[id]) {
        auto& [runs, seconds] = ops[within_layer(std::string(graph.op_name(step.id)))];
        ++runs;
        seconds += static_cast<double>(graph.time(step.id)) * 1e-9;
      } else if (step.action == remat::Action::compute) {
        ran[id] = true;
      } else if (step.action == remat::Action::copy_in) {
        const auto of_stage = static_cast<std::size_t>(chunk.graph.tensors[id]);
        auto& [copies, bytes] = tensors[within_layer(chunk.ops.tensors[of_stage].name)];
        ++copies;
        bytes += graph.size(step.id);
      }
    }
  }
  for (const auto& [name, cost] : ops)
    again["rows"].push_back({plan.stage, name, cost.first, cost.second * 1e3});
  for (const auto& [name, cost] : tensors)
    swapped["rows"].push_back(
        {plan.stage, name, cost.first, static_cast<double>(cost.second) / kMiB});
}

PageJson tables_of(const PlannedStep& memory) {
  PageJson again{{"title", "What runs again"},
                 {"columns", {"stage", "operator", "runs", "ms"}},
                 {"rows", PageJson::array()},
                 {"note", "in a micro-batch, all layers of the stage together"}};
  PageJson swapped{{"title", "What is swapped to host memory"},
                   {"columns", {"stage", "tensor", "copies back", "MiB"}},
                   {"rows", PageJson::array()},
                   {"note", "in a micro-batch, all layers of the stage together"}};
  for (const StageMemoryPlan& plan : memory.stages)
    if (plan.needed && plan.feasible) add_decisions(plan, again, swapped);
  PageJson tables = PageJson::array({stages_table(memory)});
  for (PageJson* table : {&again, &swapped})
    if (!(*table)["rows"].empty()) tables.push_back(std::move(*table));
  return tables;
}

PageJson memory_of(const MemoryPlanReport& report, const PageJson& without, const PageJson& with) {
  const PlannedStep& memory = report.steps->memory;
  const PageJson& shown = with.is_null() ? without : with;
  PageJson ranks = PageJson::array();
  for (std::size_t i = 0; i < shown["ranks"].size(); ++i) {
    PageJson rank = shown["ranks"][i];
    const auto stage = rank["stage"].get<std::size_t>();
    rank["name"] = "stage " + std::to_string(stage);
    rank["static_bytes"] = memory.stages[stage].static_bytes.value();
    if (!with.is_null())
      rank["before"] = {{"times_s", without["ranks"][i]["times_s"]},
                        {"bytes", without["ranks"][i]["bytes"]}};
    ranks.push_back(std::move(rank));
  }
  return {{"step_time_s",
           std::max(without["step_time_s"].get<double>(), shown["step_time_s"].get<double>())},
          {"capacity_bytes", report.steps->base.topology.cluster().node.gpu.memory.value()},
          {"budget_bytes", memory.budget.value()},
          {"ranks", std::move(ranks)}};
}

}  // namespace

PageJson memory_of_stages(const TimedProgram& timed, const Timeline& timeline) {
  constexpr StepPageLimits kLimits;
  const TimelineIndex index(timed, timeline);
  std::set<int> stages;
  PageJson ranks = PageJson::array();
  for (const auto& simulated : index.simulated()) {
    const int rank = simulated.rank;
    if (!stages.insert(index.program_of(rank).stage).second) continue;
    PageJson data = memory_of_rank(index, timed, rank, kLimits.memory_samples);
    data["peak_bytes"] =
        data["bytes"].empty() ? PageJson(0) : *std::ranges::max_element(data["bytes"]);
    data["categories"] = memory_by_category(index, timed, rank, kLimits.category_samples);
    ranks.push_back(std::move(data));
  }
  return {{"step_time_s", timeline.step_time.value()}, {"ranks", std::move(ranks)}};
}

std::string memory_plan_page(const MemoryPlanReport& report, const PageJson& without,
                             const PageJson& with, const Provenance& provenance) {
  const PlannedStep& memory = report.steps->memory;
  PageJson page{{"title", report.scenario + ": memory plan by " + report.planner + " within " +
                              to_short_text(memory.budget) + " per GPU"}};
  page["summary"] = summary_of(report);
  page["memory"] = memory_of(report, without, with);
  page["tables"] = tables_of(memory);
  page["provenance"] = provenance_data(provenance);
  return html_page(page);
}

PointsReport memory_curve_points(const std::vector<MemoryPlanReport>& reports) {
  PointsReport points{.title = reports.front().scenario + ": memory plans by " +
                               reports.front().planner + " for " + std::to_string(reports.size()) +
                               " budgets"};
  points.columns = {{"budget [GiB]", -1},       {"added [%]", -1},           {"peak [GiB]", -1},
                    {"expected step [ms]", -1}, {"simulated step [ms]", -1}, {"verdict", 0, false}};
  for (const MemoryPlanReport& report : reports) {
    const PlannedStep& memory = report.steps->memory;
    std::string verdict = "fits";
    for (const StageMemoryPlan& plan : memory.stages)
      if (!plan.feasible && verdict == "fits") verdict = plan.infeasible;
    points.labels.push_back("budget " + to_short_text(report.budget));
    points.rows.push_back(
        {gib(report.budget), added_percent(report),
         memory.feasible() ? PageJson(gib(highest(memory, &StageMemoryPlan::planned_peak)))
                           : PageJson(),
         milliseconds(report.planned_time), milliseconds(report.simulated_time), verdict});
  }
  points.summary = {{"step time without a plan [ms]", milliseconds(reports.front().base_time)},
                    {"peak without a plan [GiB]",
                     gib(highest(reports.front().steps->memory, &StageMemoryPlan::base_peak))}};
  points.note = "A point per budget. A click chooses one.";
  return points;
}

}  // namespace tessera
