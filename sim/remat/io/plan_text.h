#pragma once

#include <string>

#include "sim/remat/io/instance.h"
#include "sim/remat/planner.h"

namespace tessera::remat {

/// A plan with the question that it answers.
struct PlanReport {
  const Instance* instance = nullptr;
  PlanRequest request;
  std::string planner;
  PlanResult result;
};

/// JSON. `overhead` is time_s / base_time_s - 1; `decisions` lists in order what runs again, leaves
/// for the host and comes back, each with the operator (`before`) that runs next for the first
/// time. Without a plan within the budget `feasible` is false, `time_s` null, and `infeasible` says
/// whether that is proven by the working set of an operator, and how many bytes are missing.
std::string plan_json(const PlanReport& report);

/// The same for people, without the list of decisions.
std::string plan_table(const PlanReport& report);

}  // namespace tessera::remat
