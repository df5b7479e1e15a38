#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/validate/error_summary.h"
#include "lab/validate/models/match_operators.h"
#include "lab/validate/models/score_models.h"

namespace tessera {

/// Sums over operators. Only what was timed and is launched too is compared.
struct OperatorSums {
  int matched = 0;    ///< passes of operators that are on both sides
  int kernels = 0;    ///< that they launch
  Seconds measured;   ///< of the matched
  Seconds predicted;  ///< of the matched, as isolated calls
  int only_timed = 0;
  Seconds only_timed_measured;
  int only_launched = 0;
  Seconds only_launched_predicted;

  void add(const OperatorMatch& match);
  void add(const OperatorSums& other);
  /// Predicted against measured; nothing where nothing matched.
  std::optional<double> error_pct() const;
};

/// Sums over the operators of one class and pass.
struct OperatorClassScore {
  OperatorClass operator_class = OperatorClass::other;
  OperatorPass pass = OperatorPass::forward;
  OperatorSums sums;
};

/// Operators of one kind and size of which one side has more.
struct OperatorCount {
  OperatorKey key;
  OperatorPass pass = OperatorPass::forward;
  int timed = 0;
  int launched = 0;
  Seconds unmatched;  ///< measured or predicted time of the surplus
};

struct OperatorRunScore {
  ModelRun run;
  std::vector<OperatorClassScore> classes;  ///< by pass, then class; those that occur
  std::vector<OperatorCount> unmatched;
  OperatorSums total;
  std::optional<Bounds> interval;  ///< of the total's prediction; empty where it is not known
  std::string profile;             ///< of the framework
  std::string skipped;             ///< why it was not compared; empty if it was
};

/// Sums of a GPU's runs by class and pass.
struct OperatorGpuScore {
  std::string gpu;
  std::vector<OperatorClassScore> classes;
  OperatorSums total;
};

/// What `tessera validate --operators` reports.
struct OperatorValidation {
  std::vector<OperatorRunScore> runs;  ///< in the order of the file
  std::vector<OperatorGpuScore> gpus;  ///< in order of their names
  ErrorSummary summary;                ///< over the totals of the runs
  std::vector<SkippedRow> skipped;     ///< runs, by their first lines
};

/// Compares timed operators with the kernels of the graph of the same layer, embedding and head. A
/// run that cannot be expressed, or whose mode fuses operators, is listed as skipped.
OperatorValidation score_operators(const std::vector<OperatorRun>& runs,
                                   const ScenarioOfRun& scenario_of,
                                   const PredictorWeights& weights);

}  // namespace tessera
