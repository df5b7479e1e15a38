#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/validate/models/score_models.h"
#include "lab/validate/runs/training_run_scenario.h"

namespace tessera {

/// What a measured row becomes ahead of any simulation.
struct ResolvedRow {
  std::string id;                     ///< as written; "line 7" where the row has none
  std::vector<std::string> settings;  ///< "path=value" of its scenario
  std::string measured;               ///< "step_time_s=0.23 peak_memory_GiB=31"
  std::string hash;     ///< of what identifies the scenario: equal for rows that simulate alike
  std::string yaml;     ///< the scenario, self-contained
  std::string skipped;  ///< why there is none; empty where there is
};

/// How rows become settings, and scenarios.
template <class Run>
struct RowResolution {
  std::function<std::vector<std::string>(const Run&)> settings_of;
  std::function<Scenario(const Run&)> scenario_of;
};

/// In the order of the list; rows that the reader skipped stand behind them.
std::vector<ResolvedRow> resolve_rows(const TrainingRuns& runs,
                                      const RowResolution<TrainingRun>& resolution);
std::vector<ResolvedRow> resolve_rows(const std::vector<ModelRun>& runs,
                                      const RowResolution<ModelRun>& resolution);

/// A line per row: id, and the hash or "skipped: REASON".
std::string hash_lines(const std::vector<ResolvedRow>& rows);

/// A comment with id and measurements, then a line per setting, as after --set.
std::string setting_lines(const std::vector<ResolvedRow>& rows);

/// The scenarios one behind the other as YAML documents, each below a comment with its id.
std::string scenario_documents(const std::vector<ResolvedRow>& rows);

}  // namespace tessera
