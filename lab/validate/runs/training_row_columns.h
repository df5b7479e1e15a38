#pragma once

#include <string>
#include <vector>

#include "lab/validate/runs/training_row.h"

namespace tessera {

/// Why the row cannot be simulated; empty if it can. Every column of `columns` is read, or is
/// known to say nothing of the step, or is one of `ignored`; a row that states something in any
/// other column, or what the simulation lacks, has an obstacle that names it.
std::string obstacle_of(const TrainingRowReader& row, const std::vector<std::string>& columns,
                        const std::vector<std::string>& ignored);

}  // namespace tessera
