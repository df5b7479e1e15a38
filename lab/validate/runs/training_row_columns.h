#pragma once

#include <string>
#include <vector>

#include "lab/validate/runs/training_row.h"

namespace tessera {

/// Why the row cannot be simulated; empty if it can. `row` reads what is written: every column in
/// which it states something is one of `rules` or of `ignored`; one that states something in any
/// other column, or what the simulation lacks, has an obstacle that names it.
std::string obstacle_of(const TrainingRowReader& row, const RowMeaning& meaning,
                        const RowRules& rules, const std::vector<std::string>& ignored);

}  // namespace tessera
