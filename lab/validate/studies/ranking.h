#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// A measured layout beside our simulation of it. Layouts are ranked among those of one source,
/// model and number of GPUs: what a what-if study asks for.
struct RankedRun {
  std::string source;
  std::string model;
  int n_gpus = 1;
  std::string id;
  double measured = 0;   ///< seconds per token, above 0
  double simulated = 0;  ///< the same
};

/// How well one such group is ranked.
struct GroupRanking {
  std::string source;
  std::string model;
  int n_gpus = 1;
  int rows = 0;
  std::optional<double> spearman;  ///< in [-1, 1]; empty where all rows of a side are equal
  double regret_pct = 0;           ///< >= 0
};

/// The groups of one source, or of all.
struct RankingSummary {
  std::string source;  ///< empty: of all
  int groups = 0;
  int rows = 0;
  std::optional<double> mean_spearman;    ///< over the groups that have one
  std::optional<double> pooled_spearman;  ///< of all their rows together
  double mean_regret_pct = 0;
  double max_regret_pct = 0;
};

struct Ranking {
  std::vector<GroupRanking> groups;     ///< by source, model, n_gpus
  std::vector<RankingSummary> sources;  ///< by name
  RankingSummary all;
};

/// Groups need that many rows to be ranked.
constexpr int kRankedRows = 5;

/// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> average_ranks(const std::vector<double>& values);

/// Spearman's rank correlation (Pearson's of the average ranks); empty for fewer than two values
/// or where all values of a side are equal.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);

/// How much slower, as measured, the layout is that is simulated fastest than the one measured
/// fastest, in percent. Of several simulated equally fast the slowest counts.
double regret_pct(const std::vector<double>& measured, const std::vector<double>& simulated);

/// Ranks the groups of kRankedRows or more.
Ranking rank_layouts(const std::vector<RankedRun>& runs);

}  // namespace tessera
