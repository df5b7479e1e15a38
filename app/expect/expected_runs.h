#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/catalog.h"
#include "sim/report/time_category.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// A row of a table of runs: what is simulated, and what the step is expected to take.
struct ExpectedRun {
  std::string where;     ///< "runs.csv:3"
  std::string scenario;  ///< id or file, as the row has it
  std::string settings;  ///< "training.micro_batch=2 parallelism.tensor=4"; may be empty
  Scenario step;
  std::optional<Seconds> step_time;     ///< empty: not known yet
  std::optional<TimeBreakdown> phases;  ///< empty where the table has none
};

/// Reads a CSV file with columns `scenario` and `step_time_s`, and if it likes `settings` (as
/// --set takes them, with blanks between) and a column for every phase that record_runs() writes.
/// `overrides` go on top of each row's own. Throws one InputError with every problem of every row.
std::vector<ExpectedRun> read_expected_runs(const std::filesystem::path& file,
                                            const std::vector<std::string>& overrides,
                                            const Catalog& catalog);

/// "exposed_tensor_s".
std::string phase_column(TimeCategory category);

}  // namespace tessera
