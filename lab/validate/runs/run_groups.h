#pragma once

#include <string>
#include <vector>

#include "lab/validate/runs/score_training_runs.h"

namespace tessera {

// Rows of measured steps that have something in common.

/// Of a row with an error.
ScoredError scored_error(const TrainingRunScore& row);

/// Who measured the run, in words where nobody is named.
std::string source_name(const TrainingRun& run);

/// Counts the row among those that ran or did not, where it says so.
void judge(const TrainingRunScore& row, FitVerdicts& verdicts);

/// Errors by column and value.
std::vector<ErrorGroup> group_errors(const std::vector<TrainingRunScore>& rows);

/// Verdicts by model, where some job was out of memory; none where all are of one model.
std::vector<VerdictGroup> group_verdicts(const std::vector<TrainingRunScore>& rows);

}  // namespace tessera
