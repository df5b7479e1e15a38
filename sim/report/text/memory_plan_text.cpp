#include "sim/report/text/memory_plan_text.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "hw/units/formatted.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

using nlohmann::ordered_json;

double gib(Bytes bytes) {
  return static_cast<double>(bytes.value()) / (1 << 30);
}

std::string seconds_text(const std::optional<Seconds>& time) {
  if (!time) return "-";
  return formatted("%.4f s", time->value());
}

double overhead(const MemoryPlanReport& report) {
  return 100 * (*report.simulated_time / report.base_time - 1);
}

std::string stage_row(const StageMemoryPlan& plan) {
  if (!plan.feasible) return "  " + plan.infeasible + "\n";
  return text_line("%5d %9d %7.2f %7.2f %7.2f %6d %7d %7.2f %8.2f %+8.2f", plan.stage,
                   plan.in_flight, gib(plan.static_bytes), gib(plan.base_peak),
                   gib(plan.planned_peak), plan.decisions.run_again, plan.decisions.copied_out,
                   gib(plan.copied), plan.base_time.value() * 1e3,
                   100 * (plan.planned_time / plan.base_time - 1));
}

ordered_json number(const std::optional<Seconds>& time) {
  return time ? ordered_json(time->value()) : ordered_json(nullptr);
}

ordered_json stage_json(const StageMemoryPlan& plan) {
  ordered_json json{{"stage", plan.stage},
                    {"micro_batches_in_flight", plan.in_flight},
                    {"needed", plan.needed},
                    {"feasible", plan.feasible},
                    {"static_bytes", plan.static_bytes.value()},
                    {"base_peak_bytes", plan.base_peak.value()},
                    {"planned_peak_bytes", plan.planned_peak.value()},
                    {"planned_reserved_bytes", plan.planned_reserved.value()},
                    {"lower_bound_bytes", plan.lower_bound.value()},
                    {"micro_batch_s", plan.base_time.value()},
                    {"planned_micro_batch_s", plan.planned_time.value()},
                    {"recompute_s", plan.recompute.value()},
                    {"stall_s", plan.stall.value()},
                    {"copied_bytes", plan.copied.value()},
                    {"run_again", plan.decisions.run_again},
                    {"copied_out", plan.decisions.copied_out},
                    {"certified_gap", plan.certified_gap}};
  if (!plan.note.empty()) json["note"] = plan.note;
  if (!plan.feasible) {
    json["infeasible"] = plan.infeasible;
    json["missing_bytes"] = plan.missing.value();
  }
  return json;
}

ordered_json device_json(const DeviceMemory& memory, Bytes capacity) {
  return {
      {"allocated_bytes", memory.allocated.value()}, {"reserved_bytes", memory.reserved.value()},
      {"context_bytes", memory.context.value()},     {"nccl_bytes", memory.communicators.value()},
      {"device_bytes", memory.total().value()},      {"capacity_bytes", capacity.value()},
      {"fits", memory.total() <= capacity}};
}

/// "memory of the fullest GPU  ...": with the plan, whatever the budget.
std::string device_line(const MemoryPlanReport& report) {
  const DeviceMemory memory = report.steps->memory.device();
  return text_line(
      "memory of the fullest GPU %.3f of %.3f GiB: reserved %.3f, CUDA context %.3f, "
      "NCCL %.3f",
      gib(memory.total()), gib(report.steps->base.memory_capacity), gib(memory.reserved),
      gib(memory.context), gib(memory.communicators));
}

ordered_json report_json(const MemoryPlanReport& report) {
  const PlannedStep& memory = report.steps->memory;
  ordered_json stages = ordered_json::array();
  for (const StageMemoryPlan& plan : memory.stages) stages.push_back(stage_json(plan));
  return {{"scenario", report.scenario},
          {"planner", report.planner},
          {"budget_bytes", memory.budget.value()},
          {"link_bytes_per_s", memory.link.bytes_per_ns * 1e9},
          {"feasible", memory.feasible()},
          {"memory", device_json(memory.device(), report.steps->base.memory_capacity)},
          {"base_step_s", report.base_time.value()},
          {"planned_step_s", number(report.planned_time)},
          {"simulated_step_s", number(report.simulated_time)},
          {"stages", std::move(stages)}};
}

/// What happens to each operator and tensor of a model chunk. `named`: with the micro-batches that
/// it happens to, where others of the chunk have another plan.
void add_decisions(const ChunkMemoryPlan& plan, bool named, ordered_json& recompute,
                   ordered_json& offload) {
  const auto add = [&](ordered_json& list, ordered_json entry) {
    if (named) entry["backward"] = plan.splits ? "split" : "whole";
    list.push_back(std::move(entry));
  };
  const remat::Graph& graph = plan.graph.graph;
  std::vector<int> runs(static_cast<std::size_t>(graph.ops()), 0);
  std::map<remat::TensorId, int> copies;
  for (const remat::Step& step : plan.schedule) {
    if (step.action == remat::Action::compute) ++runs[static_cast<std::size_t>(step.id)];
    if (step.action == remat::Action::copy_in) ++copies[step.id];
  }
  for (remat::OpId op = 0; op < graph.ops(); ++op) {
    const int times = runs[static_cast<std::size_t>(op)] - 1;
    if (times > 0)
      add(recompute, {{"op", std::string(graph.op_name(op))},
                      {"times", times},
                      {"seconds", static_cast<double>(graph.time(op)) * 1e-9}});
  }
  for (const auto& [tensor, times] : copies) {
    const int of_stage = plan.graph.tensors[static_cast<std::size_t>(tensor)];
    add(offload, {{"tensor", plan.ops.tensors[static_cast<std::size_t>(of_stage)].name},
                  {"bytes", graph.size(tensor)},
                  {"times", times}});
  }
}
ordered_json decisions_of(const StageMemoryPlan& plan) {
  ordered_json recompute = ordered_json::array(), offload = ordered_json::array();
  for (const ChunkMemoryPlan& chunk : plan.chunks) {
    const auto of_chunk = std::ranges::count(plan.chunks, chunk.chunk, &ChunkMemoryPlan::chunk);
    add_decisions(chunk, of_chunk > 1, recompute, offload);
  }
  return {{"stage", plan.stage},
          {"needed", plan.needed},
          {"recompute", std::move(recompute)},
          {"offload", std::move(offload)}};
}

/// Neither time of the table is of the scenario as it is.
std::string replaced_line(const MemoryPlanReport& report) {
  return report.replaced.empty() ? ""
                                 : "in place of training.recompute = " + report.replaced +
                                       ", without which both times are\n";
}

}  // namespace

std::string memory_plan_table(const MemoryPlanReport& report) {
  const PlannedStep& memory = report.steps->memory;
  std::string text =
      report.scenario + ": " + report.planner + " within " + to_short_text(memory.budget) +
      " per GPU; host link " + to_short_text(BytesPerSecond(memory.link.bytes_per_ns * 1e9)) +
      " per direction; memory in GiB\n" + replaced_line(report) + "\n" +
      text_line("%5s %9s %7s %7s %7s %6s %7s %7s %8s %8s", "stage", "in flight", "static", "before",
                "after", "rerun", "swapped", "copied", "pass ms", "added %");
  for (const StageMemoryPlan& plan : memory.stages) text += stage_row(plan);
  text += "\nstep time without a plan  " + seconds_text(report.base_time) + "\n";
  text += "expected with the plan    " + seconds_text(report.planned_time) + "\n";
  text += "simulated with the plan   " + seconds_text(report.simulated_time) + "\n";
  if (memory.feasible()) text += device_line(report);
  if (memory.split > 1)
    text += "every micro-batch runs in " + std::to_string(memory.split) + " parts\n";
  for (const StageMemoryPlan& plan : memory.stages)
    if (!plan.note.empty()) text += "stage " + std::to_string(plan.stage) + ": " + plan.note + "\n";
  return text;
}

std::string memory_plan_json(const MemoryPlanReport& report) {
  ordered_json json{{"schema", "tessera.memory_plan/1"}};
  json.update(report_json(report));
  return json.dump(2) + "\n";
}

void keep_fastest_of_tighter(std::vector<MemoryPlanReport>& curve) {
  const MemoryPlanReport* fastest = nullptr;
  for (MemoryPlanReport& report : curve) {
    const bool slower = fastest != nullptr && (!report.simulated_time ||
                                               *report.simulated_time > *fastest->simulated_time);
    if (slower) {
      const Bytes budget = report.budget;
      report = *fastest;
      report.budget = budget;
    }
    if (report.simulated_time) fastest = &report;
  }
}

std::string memory_curve_table(const std::vector<MemoryPlanReport>& reports) {
  std::string text = text_line("%12s %12s %12s %12s %10s", "budget GiB", "peak GiB", "expected s",
                               "simulated s", "added %");
  for (const MemoryPlanReport& report : reports) {
    const PlannedStep& memory = report.steps->memory;
    Bytes peak;
    std::string why;
    for (const StageMemoryPlan& plan : memory.stages) {
      peak = std::max(peak, plan.planned_peak);
      if (!plan.feasible && why.empty()) why = plan.infeasible;
    }
    text += memory.feasible()
                ? text_line("%12.3f %12.3f %12.4f %12.4f %+10.2f", gib(report.budget), gib(peak),
                            report.planned_time->value(), report.simulated_time->value(),
                            overhead(report))
                : text_line("%12.3f  ", gib(report.budget)).substr(0, 14) + why + "\n";
  }
  return text;
}

std::string memory_curve_json(const std::vector<MemoryPlanReport>& reports) {
  ordered_json list = ordered_json::array();
  for (const MemoryPlanReport& report : reports) {
    list.push_back(report_json(report));
    list.back()["budget_bytes"] = report.budget.value();
    list.back()["planned_for_bytes"] = report.steps->memory.budget.value();
  }
  return ordered_json{{"schema", "tessera.memory_curve/1"}, {"budgets", std::move(list)}}.dump(2) +
         "\n";
}

std::string memory_decisions_json(const MemoryPlanReport& report) {
  ordered_json stages = ordered_json::array();
  for (const StageMemoryPlan& plan : report.steps->memory.stages)
    stages.push_back(plan.needed && plan.feasible
                         ? decisions_of(plan)
                         : ordered_json{{"stage", plan.stage},
                                        {"needed", plan.needed},
                                        {"recompute", ordered_json::array()},
                                        {"offload", ordered_json::array()}});
  return ordered_json{{"schema", "tessera.memory_decisions/1"},
                      {"scenario", report.scenario},
                      {"planner", report.planner},
                      {"budget_bytes", report.steps->memory.budget.value()},
                      {"stages", std::move(stages)}}
             .dump(2) +
         "\n";
}

}  // namespace tessera
