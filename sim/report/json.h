#pragma once

#include <string>

#include "sim/report/provenance.h"
#include "sim/report/step_report.h"

namespace tessera {

/// The report as JSON of schema "tessera.result/1" (configs/schema/result.schema.json): ordered
/// keys, SI units, numbers in round-trip form; equal reports give equal bytes. `timing` adds the
/// object "timing_s" unless it is empty. Ends with a newline.
std::string json_text(const StepReport& report, const Provenance& provenance,
                      const RunTiming& timing = {});

}  // namespace tessera
