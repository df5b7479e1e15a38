#pragma once

#include <string>

#include "app/explain/comparison.h"

namespace tessera {

/// Two steps beside each other as an HTML file.
std::string comparison_page(const StepComparison& comparison, const std::string& tessera_version);

}  // namespace tessera
