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
  const PlannedSteps* steps = nullptr;
  Seconds base_time;                      ///< simulated, whether or not it fits
  std::optional<Seconds> planned_time;    ///< expected: base plus what the plans add
  std::optional<Seconds> simulated_time;  ///< with the plans' kernels and copies; nothing where a
                                          ///< stage has no plan
};

/// A table by stage, the step time without and with the plans.
std::string memory_plan_table(const MemoryPlanReport& report);
std::string memory_plan_json(const MemoryPlanReport& report);

/// A row per budget.
std::string memory_curve_table(const std::vector<MemoryPlanReport>& reports);
std::string memory_curve_json(const std::vector<MemoryPlanReport>& reports);

/// Per stage what runs again and what is offloaded, operator by operator, for somebody to apply in
/// PyTorch or Megatron. JSON, schema tessera.memory_decisions/1.
std::string memory_decisions_json(const MemoryPlanReport& report);

/// Memory of a stage over its ops before and after, as SVG.
std::string memory_plan_svg(const MemoryPlanReport& report, int stage);

}  // namespace tessera
