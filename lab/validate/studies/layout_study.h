#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/validate/runs/score_training_runs.h"

namespace tessera {

// Measured layouts, each once however often it was measured, beside two questions: are they ranked
// right, and would one number do as well as a simulation?

/// Rows that simulate alike: one layout, which several releases ran.
struct MeasuredLayout {
  std::string source, model;
  bool experts = false;
  double mfu = 0;        ///< at the mean of the measured times; of a GPU's dense peak, above 0
  double measured = 0;   ///< GPU seconds per token (or image), the mean of its rows
  double simulated = 0;  ///< the same
};

/// The layouts of rows that have both times, in the order of the rows.
std::vector<MeasuredLayout> layouts_of(const std::vector<TrainingRunScore>& rows);

/// What one MFU for all layouts of a kind would miss by.
struct ConstantMfu {
  std::string kind;            ///< "dense", "experts", "all"
  int layouts = 0;             ///< at least 2
  double best = 0;             ///< the share that misses least on these layouts
  double best_error_pct = 0;   ///< mean absolute error with it
  double other_error_pct = 0;  ///< with the share, for each layout, that misses least on the others
  double simulated_error_pct = 0;
};

/// The share of the peak that misses least on average: its predicted times are mfu / share of the
/// measured ones. `mfus`: at least one, all above 0. Of equal ones the lowest.
double best_constant(const std::vector<double>& mfus);

/// By kind, then of all where there are two kinds; kinds of one layout are left out.
std::vector<ConstantMfu> compare_with_constants(const std::vector<MeasuredLayout>& layouts);

/// How the layouts of a model, on any GPUs, are ordered by GPU seconds per token.
struct LayoutRanking {
  std::string source, model;
  int layouts = 0;  ///< at least kRankedRows
  std::optional<double> spearman;
};
std::vector<LayoutRanking> rank_by_cost(const std::vector<MeasuredLayout>& layouts);

std::string layout_study_text(const std::vector<TrainingRunScore>& rows);

}  // namespace tessera
