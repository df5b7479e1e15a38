#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/html/points_page.h"
#include "sim/report/provenance.h"
#include "sim/report/text/memory_plan_text.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// Memory over time of the first simulated rank of every pipeline stage, for memory_plan_page(): to
/// be called where the step was simulated, which is a process of its own.
nlohmann::ordered_json memory_of_stages(const TimedProgram& timed, const Timeline& timeline);

/// A memory plan as an HTML page: memory of every stage without and with the plan under the budget,
/// with what is copied and computed again when, what each stage pays, every operator that runs
/// again and every tensor that is swapped. `without` and `with`: memory_of_stages() of both steps;
/// `with` is null where a stage has no plan.
std::string memory_plan_page(const MemoryPlanReport& report, const nlohmann::ordered_json& without,
                             const nlohmann::ordered_json& with, const Provenance& provenance);

/// Plans of one scenario for several budgets, as points of points_page().
PointsReport memory_curve_points(const std::vector<MemoryPlanReport>& reports);

}  // namespace tessera
