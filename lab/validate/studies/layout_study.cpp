#include "lab/validate/studies/layout_study.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "hw/units/formatted.h"
#include "lab/validate/error_text.h"
#include "lab/validate/runs/run_groups.h"

namespace tessera {
namespace {

constexpr const char* kLayoutDefinition =
    "layouts: rows that simulate alike are one, with the mean of their measured times. Constant: "
    "one share of the dense peak in the step's format for all layouts of a kind, the one whose "
    "mean absolute error is least; \"from the others\" chooses it for each layout without that "
    "layout. Spearman: rank correlation of measured and simulated GPU seconds per token over the "
    "layouts of a model, on any GPUs, 5 or more.";

/// Mean absolute error of step times, in percent, under one share of the peak.
double error_of(double share, const std::vector<double>& mfus) {
  double sum = 0;
  for (const double mfu : mfus) sum += std::abs(mfu / share - 1);
  return 100 * sum / static_cast<double>(mfus.size());
}

double error_from_others(const std::vector<double>& mfus) {
  double sum = 0;
  for (std::size_t left_out = 0; left_out < mfus.size(); ++left_out) {
    std::vector<double> others = mfus;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    sum += error_of(best_constant(others), {mfus[left_out]});
  }
  return sum / static_cast<double>(mfus.size());
}

ConstantMfu compared(const std::string& kind, const std::vector<MeasuredLayout>& layouts) {
  std::vector<double> mfus;
  double simulated = 0;
  for (const MeasuredLayout& layout : layouts) {
    mfus.push_back(layout.mfu);
    simulated += std::abs(layout.simulated / layout.measured - 1);
  }
  const double best = best_constant(mfus);
  return {.kind = kind,
          .layouts = static_cast<int>(layouts.size()),
          .best = best,
          .best_error_pct = error_of(best, mfus),
          .other_error_pct = error_from_others(mfus),
          .simulated_error_pct = 100 * simulated / static_cast<double>(layouts.size())};
}

}  // namespace

std::vector<MeasuredLayout> layouts_of(const std::vector<TrainingRunScore>& rows) {
  struct Sums {
    MeasuredLayout layout;
    double seconds = 0, work = 0, rows = 0;
  };
  std::vector<Sums> found;
  std::map<std::tuple<std::string, std::string, std::string, double>, std::size_t> places;
  for (const TrainingRunScore& row : rows) {
    if (!row.error_pct || !row.mfu) continue;
    const TrainingRun& run = row.run;
    const double simulated = row.simulated->value(), measured = run.step_time->value();
    const auto [place, is_new] =
        places.try_emplace({source_name(run), run.model, run.gpu, simulated}, found.size());
    const double length = static_cast<double>(std::max<std::int64_t>(1, run.sequence_length));
    const double per_token = run.n_gpus / (static_cast<double>(run.global_batch) * length);
    if (is_new)
      found.push_back({.layout = {.source = source_name(run),
                                  .model = run.model,
                                  .experts = row.experts,
                                  .measured = per_token,
                                  .simulated = simulated * per_token},
                       .work = *row.mfu * measured});
    found[place->second].seconds += measured;
    found[place->second].rows += 1;
  }
  std::vector<MeasuredLayout> layouts;
  for (Sums& sums : found) {
    const double mean = sums.seconds / sums.rows;
    sums.layout.measured *= mean;
    sums.layout.mfu = sums.work / mean;
    layouts.push_back(std::move(sums.layout));
  }
  return layouts;
}

double best_constant(const std::vector<double>& mfus) {
  // The error is convex and piecewise linear in 1 / share, with corners at the values themselves.
  double best = 0, least = std::numeric_limits<double>::infinity();
  std::vector<double> shares = mfus;
  std::ranges::sort(shares);
  for (const double share : shares) {
    const double error = error_of(share, mfus);
    if (error >= least) continue;
    least = error;
    best = share;
  }
  return best;
}

std::vector<ConstantMfu> compare_with_constants(const std::vector<MeasuredLayout>& layouts) {
  std::map<std::string, std::vector<MeasuredLayout>> kinds;
  for (const MeasuredLayout& layout : layouts)
    kinds[layout.experts ? "experts" : "dense"].push_back(layout);
  std::vector<ConstantMfu> result;
  for (const auto& [kind, of_kind] : kinds)
    if (of_kind.size() > 1) result.push_back(compared(kind, of_kind));
  if (kinds.size() > 1) result.push_back(compared("all", layouts));
  return result;
}

std::vector<LayoutRanking> rank_by_cost(const std::vector<MeasuredLayout>& layouts) {
  std::map<std::pair<std::string, std::string>, std::pair<std::vector<double>, std::vector<double>>>
      models;
  for (const MeasuredLayout& layout : layouts) {
    auto& [measured, simulated] = models[{layout.source, layout.model}];
    measured.push_back(layout.measured);
    simulated.push_back(layout.simulated);
  }
  std::vector<LayoutRanking> result;
  for (const auto& [key, costs] : models) {
    const int count = static_cast<int>(costs.first.size());
    if (count < kRankedRows) continue;
    result.push_back({key.first, key.second, count, spearman(costs.first, costs.second)});
  }
  return result;
}

std::string layout_study_text(const std::vector<TrainingRunScore>& rows) {
  const std::vector<MeasuredLayout> layouts = layouts_of(rows);
  std::string text;
  for (const ConstantMfu& constant : compare_with_constants(layouts))
    text += text_line(
        "one MFU, %-8s layouts %3d   %4.1f %% of the peak: mean |error| %5.1f %%, from the others "
        "%5.1f %%   simulated %5.1f %%",
        constant.kind.c_str(), constant.layouts, 100 * constant.best, constant.best_error_pct,
        constant.other_error_pct, constant.simulated_error_pct);
  for (const LayoutRanking& ranking : rank_by_cost(layouts))
    text += text_line("ranking by cost, %-54s layouts %3d   Spearman %6s",
                      (ranking.source + " " + ranking.model).c_str(), ranking.layouts,
                      figure_cell(ranking.spearman, "%.3f").c_str());
  return text.empty() ? text : "\n" + text + kLayoutDefinition + "\n";
}

}  // namespace tessera
