#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/plan.h"

namespace tessera {

/// A memory plan of a step with what the engine says about it.
struct MemoryPlanReport {
  std::string scenario;
  std::string planner;
  Bytes budget;  ///< that was asked for; the plan may be made for a tighter one
  const PlannedSteps* steps = nullptr;
  Seconds base_time;                      ///< simulated, whether or not it fits
  std::optional<Seconds> planned_time;    ///< expected: base plus what the plans add
  std::optional<Seconds> simulated_time;  ///< with the plans' kernels and copies; nothing where a
                                          ///< stage has no plan
  std::string replaced = {};  ///< the scenario's training.recompute; empty where it is none
};

/// A table by stage, the step time without and with the plans.
std::string memory_plan_table(const MemoryPlanReport& report);
std::string memory_plan_json(const MemoryPlanReport& report);

/// Of plans for rising budgets, puts the fastest one of all tighter budgets where the plan for a
/// wider one is slower, or there is none: what fits into less memory fits into more.
void keep_fastest_of_tighter(std::vector<MemoryPlanReport>& curve);

/// A row per budget.
std::string memory_curve_table(const std::vector<MemoryPlanReport>& reports);
std::string memory_curve_json(const std::vector<MemoryPlanReport>& reports);

/// Per stage what runs again and what is offloaded, operator by operator, for somebody to apply in
/// PyTorch or Megatron. JSON, schema tessera.memory_decisions/1.
std::string memory_decisions_json(const MemoryPlanReport& report);

/// Memory of a stage over its ops before and after, as SVG.
std::string memory_plan_svg(const MemoryPlanReport& report, int stage);

}  // namespace tessera
