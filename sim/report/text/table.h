#pragma once

#include <string>

#include "sim/report/provenance.h"
#include "sim/report/step_report.h"

namespace tessera {

/// The report as a person reads it on a terminal: aligned, with units, without colours, at most
/// forty lines, the definitions of the ratios below the numbers. Ends with a newline.
std::string table_text(const StepReport& report, const Provenance& provenance);

}  // namespace tessera
