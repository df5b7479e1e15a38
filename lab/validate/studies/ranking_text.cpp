#include "lab/validate/studies/ranking_text.h"

#include "hw/units/formatted.h"
#include "lab/validate/error_text.h"

namespace tessera {
namespace {

using RankingJson = nlohmann::ordered_json;

constexpr const char* kRankingDefinition =
    "groups: rows of one source, model and number of GPUs, 5 or more; Spearman: rank correlation "
    "of measured and simulated time per token; pooled: of all rows of a source's groups together; "
    "regret: how much slower, as measured, the layout that is simulated fastest is than the one "
    "measured fastest.";

std::string summary_line(const std::string& name, const RankingSummary& summary) {
  return text_line(
      "ranking %-34s groups %3d rows %4d   Spearman: mean %s, pooled %s   regret: mean %.1f %%, "
      "largest %.1f %%",
      name.c_str(), summary.groups, summary.rows,
      figure_cell(summary.mean_spearman, "%.3f").c_str(),
      figure_cell(summary.pooled_spearman, "%.3f").c_str(), summary.mean_regret_pct,
      summary.max_regret_pct);
}

RankingJson number(const std::optional<double>& value) {
  return value ? RankingJson(*value) : RankingJson();
}

RankingJson json_of(const RankingSummary& summary) {
  const auto figure = [&](double value) {
    return summary.groups > 0 ? RankingJson(value) : RankingJson();
  };
  RankingJson entry;
  if (!summary.source.empty()) entry["source"] = summary.source;
  entry["groups"] = summary.groups;
  entry["rows"] = summary.rows;
  entry["mean_spearman"] = number(summary.mean_spearman);
  entry["pooled_spearman"] = number(summary.pooled_spearman);
  entry["mean_regret_pct"] = figure(summary.mean_regret_pct);
  entry["max_regret_pct"] = figure(summary.max_regret_pct);
  return entry;
}

}  // namespace

std::string ranking_text(const Ranking& ranking) {
  if (ranking.groups.empty()) return "";
  std::string text = "\n";
  for (const GroupRanking& group : ranking.groups) {
    text += text_line("layouts of %-54s n %3d   Spearman %6s   regret %5.1f %%",
                      (group.source + " " + group.model + " on " + std::to_string(group.n_gpus) +
                       (group.n_gpus == 1 ? " GPU" : " GPUs"))
                          .c_str(),
                      group.rows, figure_cell(group.spearman, "%.3f").c_str(), group.regret_pct);
  }
  for (const RankingSummary& source : ranking.sources) text += summary_line(source.source, source);
  return text + summary_line("all", ranking.all) + kRankingDefinition + "\n";
}

RankingJson ranking_json(const Ranking& ranking) {
  RankingJson groups = RankingJson::array();
  for (const GroupRanking& group : ranking.groups)
    groups.push_back({{"source", group.source},
                      {"model", group.model},
                      {"n_gpus", group.n_gpus},
                      {"rows", group.rows},
                      {"spearman", number(group.spearman)},
                      {"regret_pct", group.regret_pct}});
  RankingJson sources = RankingJson::array();
  for (const RankingSummary& source : ranking.sources) sources.push_back(json_of(source));
  return {{"definition", kRankingDefinition},
          {"groups", groups},
          {"sources", sources},
          {"all", json_of(ranking.all)}};
}

}  // namespace tessera
