#pragma once

#include <string>

#include "sim/remat/io/plan_text.h"

namespace tessera {

/// A plan of a graph of operators as an HTML page: what `remat::plan_json` says, with memory over
/// the operators under the budget.
std::string graph_plan_page(const remat::PlanReport& report, const std::string& tessera_version);

}  // namespace tessera
