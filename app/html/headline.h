#pragma once

#include <nlohmann/json.hpp>

#include "sim/report/provenance.h"
#include "sim/report/step_report.h"

namespace tessera {

/// The part "headline" of a step's page, which is its first screen: `time` (`seconds`, and
/// `low_s`, `high_s` where an interval is known), `figures[]` (`name`, `value`, `unit`, `detail`,
/// `share` where it is one of the step), `memory` (bytes: `needed`, `capacity`, `parts[]`),
/// `shares` of the step by TimeCategory, and `cautions[]`: what a reader must know before using the
/// figures.
nlohmann::ordered_json headline_of(const StepReport& report, const Provenance& provenance);

/// Model, GPUs and layout in a line: below the title.
std::string subtitle_of(const StepReport& report, const Provenance& provenance);

}  // namespace tessera
