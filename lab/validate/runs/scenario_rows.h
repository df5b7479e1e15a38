#pragma once

#include <vector>

#include "lab/validate/runs/training_runs.h"
#include "sim/config/files/csv.h"

namespace tessera {

/// Whether the rows of a file name the scenario that was measured, as `tessera expect` has it, in
/// place of spelling out the job.
bool names_scenarios(const CsvTable& table);

/// Adds the rows of such a file to `read`: `scenario` (id or file), `settings`, and what was
/// measured. What rows are grouped by is the scenario's. A row that cannot be used goes among the
/// skipped ones, or into `problems` where bad rows are refused. Throws InputError for columns that
/// it does not know.
void add_scenario_rows(const CsvTable& table, const TrainingRunReading& reading, TrainingRuns& read,
                       std::vector<Problem>& problems);

}  // namespace tessera
