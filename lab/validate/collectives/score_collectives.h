#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lab/validate/collectives/collective_runs.h"
#include "lab/validate/error_summary.h"
#include "lab/validate/runs/launch_style.h"
#include "sim/collectives/collective_plan.h"
#include "sim/config/catalog.h"

namespace tessera {

/// What a row is never predicted from where rows are calibrated on.
enum class LeaveOut : std::uint8_t {
  size,    ///< rows of the same sweep and size; the rest of the sweep calibrates it
  system,  ///< rows of the same `system`; the others fit the constants
  gpu      ///< rows of the same `gpu`; the others fit the constants
};

enum class ConstantsOf : std::uint8_t {
  shipped,  ///< fitted to published sweeps
  nccl,     ///< NCCL's tuner at its word
  unfitted  ///< constants_before_fit(): NCCL's with what its protocols do, nothing measured
};

struct CollectiveScoring {
  ConstantsOf constants = ConstantsOf::shipped;
  bool calibrate = false;
  std::vector<std::pair<std::string, std::string>> calibrate_on;  ///< column = value, all of them
  LeaveOut leave_out = LeaveOut::size;
};

struct ScoredCollective {
  CollectiveRun run;
  Seconds predicted;
  double error_pct = 0;
  Bounds interval;          ///< of predicted
  std::string skipped;      ///< why there is no prediction; empty where there is one
  bool calibrated = false;  ///< predicted from other measurements of `calibrate_on`
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  CollectiveProtocol protocol = CollectiveProtocol::simple;
};

struct CollectiveValidation {
  std::string basis;  ///< what the predictions rest on, in words
  std::vector<ScoredCollective> rows;
  ErrorSummary summary;
  /// Constants fitted to all rows of `calibrate_on`, with their names; empty unless systems or GPUs
  /// are left out.
  std::vector<std::pair<std::string, double>> fitted_constants;
  std::vector<ErrorGroup> groups;  ///< by system, gpu, collective, band, system and band; "plateau"
                                   ///< = bus bandwidth at the largest size of each sweep
  std::vector<SkippedRow> skipped;  ///< in the order of the file
};

/// Predicts every row that `catalog` can describe and compares. Throws InputError where
/// `calibrate_on` names a column that the file lacks or no row.
CollectiveValidation score_collectives(const std::vector<CollectiveRun>& runs,
                                       const CollectiveScoring& scoring, const Catalog& catalog);

/// 80 % interval of a predicted collective. Its width is what constants fitted to other systems
/// miss of a system (the 80th percentile of |log error|, results/collectives/left_out_systems.txt):
/// 0.40 below 4 MB, 0.14 from there on. Rows calibrated by their own sweep keep it: it is too wide.
Bounds collective_interval(Seconds predicted, Bytes bytes);

/// "below 4 MB" and "4 MB and more".
std::string size_band(Bytes bytes);

}  // namespace tessera
