#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "app/explain/comparison.h"

namespace tessera {

/// What drawn_step() says of both sides; null where a side was not simulated here.
struct ComparedDrawings {
  nlohmann::ordered_json a = nullptr;
  nlohmann::ordered_json b = nullptr;
};

/// Two steps beside each other as an HTML file: step times, what makes the difference class by
/// class, and where both are drawn, their timelines on one axis and their memory.
std::string comparison_page(const StepComparison& comparison, const std::string& tessera_version,
                            const ComparedDrawings& drawings = {});

}  // namespace tessera
