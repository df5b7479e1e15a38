#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "predictor/weights/weights.h"
#include "sim/config/catalog.h"

namespace tessera {

/// A published figure of a long run beside ours.
struct LongRunFigure {
  std::string what;  ///< "Llama 3 405B, 16384 GPUs"
  double measured = 0, predicted = 0;
  bool more_than = false;  ///< the publication gives a bound from below
  std::string skipped;     ///< why it is not scored; else empty
};

/// Figures of one kind, and how far ours may be off.
struct LongRunScore {
  std::string title;  ///< "effective time [%]"
  double limit = 0;   ///< in percent of the measured figure; with `in_points` in its unit
  bool in_points = false;
  std::vector<LongRunFigure> figures;

  /// Ours less the measured one, as `limit` has it.
  double off(const LongRunFigure& figure) const;
  bool is_met(const LongRunFigure& figure) const;
};

/// Scores a folder of published long runs: goodput_runs.csv, failure_rates.csv, checkpoints.csv and
/// fault_trace_400_nodes.csv, from the components that the same publications, or others for what
/// these leave out, state. Nothing is fitted. Throws InputError for what cannot be read.
std::vector<LongRunScore> score_long_runs(const std::filesystem::path& folder,
                                          const Catalog& catalog, const PredictorWeights& weights);

/// At most 80 columns wide.
std::string long_run_table(const std::vector<LongRunScore>& scores);

}  // namespace tessera
