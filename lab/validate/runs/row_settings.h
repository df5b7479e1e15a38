#pragma once

#include <string>
#include <vector>

#include "lab/validate/runs/row_rules.h"
#include "lab/validate/runs/training_row.h"
#include "workloads/program/program.h"

namespace tessera {

/// How the row spreads its job over its GPUs: what it states, replicas what is left.
ParallelLayout layout_of_row(const TrainingRowReader& row);

/// "path=value" of what the row says of its step, whatever the framework and the machine: fields
/// that columns set, sizes that follow from several, then `meaning`'s. Complains of what cannot be
/// read. The row has no obstacle.
std::vector<std::string> settings_of_row(const TrainingRowReader& row, const RowMeaning& meaning,
                                         const RowRules& rules);

}  // namespace tessera
