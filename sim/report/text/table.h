#pragma once

#include <string>

#include "sim/report/provenance.h"
#include "sim/report/step_report.h"
#include "sim/report/text/text_style.h"

namespace tessera {

/// The report as a person reads it on a terminal: aligned, with units, at most forty lines of 80
/// columns (longer where a name has no spaces). With notes, what the prediction rests on stands
/// above the numbers and the definitions of the ratios below them. Ends with a newline.
std::string table_text(const StepReport& report, const Provenance& provenance,
                       const TextStyle& style = {});

}  // namespace tessera
