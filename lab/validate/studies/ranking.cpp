#include "lab/validate/studies/ranking.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace tessera {
namespace {

/// The two columns of a set of runs.
struct Columns {
  std::vector<double> measured;
  std::vector<double> simulated;
};

void append(Columns& columns, const Columns& more) {
  columns.measured.insert(columns.measured.end(), more.measured.begin(), more.measured.end());
  columns.simulated.insert(columns.simulated.end(), more.simulated.begin(), more.simulated.end());
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Pearson's correlation; empty where a side does not vary.
std::optional<double> correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = mean(a);
  const double mean_b = mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  if (aa <= 0 || bb <= 0) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

RankingSummary summarize(const std::string& source, const std::vector<GroupRanking>& groups,
                         const Columns& pooled) {
  RankingSummary summary{.source = source,
                         .groups = static_cast<int>(groups.size()),
                         .rows = static_cast<int>(pooled.measured.size())};
  if (groups.empty()) return summary;
  std::vector<double> correlations;
  for (const GroupRanking& group : groups) {
    if (group.spearman) correlations.push_back(*group.spearman);
    summary.mean_regret_pct += group.regret_pct / summary.groups;
    summary.max_regret_pct = std::max(summary.max_regret_pct, group.regret_pct);
  }
  if (!correlations.empty()) summary.mean_spearman = mean(correlations);
  summary.pooled_spearman = spearman(pooled.measured, pooled.simulated);
  return summary;
}

}  // namespace

std::vector<double> average_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = static_cast<double>(begin + 1 + end) / 2;  // mean of begin+1 ... end
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = shared;
    begin = end;
  }
  return ranks;
}

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  assert(a.size() == b.size());
  if (a.size() < 2) return std::nullopt;
  return correlation(average_ranks(a), average_ranks(b));
}

double regret_pct(const std::vector<double>& measured, const std::vector<double>& simulated) {
  assert(!measured.empty() && measured.size() == simulated.size());
  const double fastest = *std::ranges::min_element(simulated);
  double chosen = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (simulated[i] == fastest) chosen = std::max(chosen, measured[i]);
  }
  return 100 * (chosen / *std::ranges::min_element(measured) - 1);
}

Ranking rank_layouts(const std::vector<RankedRun>& runs) {
  std::map<std::tuple<std::string, std::string, int>, Columns> groups;
  for (const RankedRun& run : runs) {
    Columns& columns = groups[{run.source, run.model, run.n_gpus}];
    columns.measured.push_back(run.measured);
    columns.simulated.push_back(run.simulated);
  }
  Ranking ranking;
  std::map<std::string, std::pair<std::vector<GroupRanking>, Columns>> by_source;
  Columns all;
  for (const auto& [key, columns] : groups) {
    if (static_cast<int>(columns.measured.size()) < kRankedRows) continue;
    const auto& [source, model, n_gpus] = key;
    const GroupRanking group{.source = source,
                             .model = model,
                             .n_gpus = n_gpus,
                             .rows = static_cast<int>(columns.measured.size()),
                             .spearman = spearman(columns.measured, columns.simulated),
                             .regret_pct = regret_pct(columns.measured, columns.simulated)};
    ranking.groups.push_back(group);
    by_source[source].first.push_back(group);
    append(by_source[source].second, columns);
    append(all, columns);
  }
  for (const auto& [source, of_source] : by_source)
    ranking.sources.push_back(summarize(source, of_source.first, of_source.second));
  ranking.all = summarize("", ranking.groups, all);
  return ranking;
}

}  // namespace tessera
