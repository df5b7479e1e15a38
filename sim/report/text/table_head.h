#pragma once

#include <string>

#include "sim/report/step_report.h"
#include "sim/report/text/table.h"

namespace tessera {

/// Traces say what ran when, and neither layout nor model nor memory.
bool is_replayed(const Provenance& provenance);

/// What was simulated, and what the prediction rests on.
std::string header_line(const StepReport& report, const Provenance& provenance,
                        const TextStyle& style);

}  // namespace tessera
