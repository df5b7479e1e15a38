#pragma once

#include <span>
#include <string>

#include "sim/config/catalog.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// `scenario` with `settings` ("training.recompute=full", the later one wins), as --set changes a
/// scenario file that gives every field but `derived`: paths of fields and sections that follow
/// from others, anew where the settings change those. Attention kernels need not be chosen yet.
/// Throws InputError with every problem.
Scenario with_settings(const Scenario& scenario, std::span<const std::string> settings,
                       std::span<const std::string> derived, const Catalog& catalog);

}  // namespace tessera
