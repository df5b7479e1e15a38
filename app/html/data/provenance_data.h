#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/report/provenance.h"
#include "sim/report/step_report.h"

namespace tessera {

/// One line of a page's list of figures; the definition is shown on hover.
nlohmann::ordered_json page_entry(std::string_view name, const nlohmann::ordered_json& value,
                                  std::string_view definition = "");

/// The part "provenance" of a page about a step.
nlohmann::ordered_json provenance_data(const StepReport& report, const Provenance& provenance);

/// Of a page about a scenario.
nlohmann::ordered_json provenance_data(const Provenance& provenance);

/// Of a page that knows nothing but who wrote it.
nlohmann::ordered_json provenance_data(const std::string& tessera_version);

}  // namespace tessera
