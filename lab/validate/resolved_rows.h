#pragma once

#include <string>
#include <vector>

#include "lab/validate/models/score_models.h"
#include "lab/validate/runs/training_run_scenario.h"

namespace tessera {

/// What a measured row becomes ahead of any simulation.
struct ResolvedRow {
  std::string id;       ///< as written; "line 7" where the row has none
  std::string hash;     ///< of what identifies the scenario: equal for rows that simulate alike
  std::string yaml;     ///< the scenario, self-contained
  std::string skipped;  ///< why there is none; empty where there is
};

/// In the order of the list; rows that the reader skipped stand behind them.
std::vector<ResolvedRow> resolve_rows(const TrainingRuns& runs,
                                      const ScenarioOfTrainingRun& scenario_of);
std::vector<ResolvedRow> resolve_rows(const std::vector<ModelRun>& runs,
                                      const ScenarioOfRun& scenario_of);

/// A line per row: id, and the hash or "skipped: REASON".
std::string hash_lines(const std::vector<ResolvedRow>& rows);

/// The scenarios one behind the other as YAML documents, each below a comment with its id.
std::string scenario_documents(const std::vector<ResolvedRow>& rows);

}  // namespace tessera
