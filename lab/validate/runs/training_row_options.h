#pragma once

#include "lab/validate/runs/training_row.h"
#include "lab/validate/runs/training_runs.h"

namespace tessera {

/// Columns of which most files have none: formats, overlaps, schedules, what counts as a layer,
/// the outcome, settings. The row has no obstacle (training_row_columns.h).
void read_options(const TrainingRowReader& row, TrainingRun& run);

/// Whose peak the row states, in its column or in its notes.
PeakRank peak_rank_of(const TrainingRowReader& row);

}  // namespace tessera
