#include "lab/validate/validation_page.h"

#include <map>

#include "app/html/page.h"
#include "app/html/provenance_data.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

PageJson figure(const std::optional<double>& value) {
  return value ? PageJson(*value) : PageJson();
}

PageJson summary_of(const TrainingRunValidation& validation) {
  PageJson summary = PageJson::array();
  const auto add = [&](const char* name, const PageJson& value, const char* definition = "") {
    summary.push_back({{"name", name}, {"value", value}, {"definition", definition}});
  };
  const ErrorSummary& errors = validation.summary;
  add("rows compared", errors.n, "simulated and measured");
  if (errors.n == 0) return summary;
  add("mean |error| [%]", errors.mean_abs_error_pct,
      "error = simulated / measured - 1 of the step time");
  add("median |error| [%]", errors.median_abs_error_pct);
  add("bias [%]", errors.bias_pct, "mean of the signed errors; positive = simulated too slow");
  add("mean over sources [%]", validation.over_sources.mean_abs_error_pct,
      "every source counts the same, whatever the number of its rows");
  const RankingSummary& ranking = validation.ranking.all;
  if (ranking.groups == 0) return summary;
  add("Spearman, mean over groups", figure(ranking.mean_spearman),
      "rank correlation of time per token among layouts of one source, model and number of GPUs");
  add("regret, mean over groups [%]", ranking.mean_regret_pct,
      "how much slower, as measured, the layout ranked first is than the best one");
  return summary;
}

PageJson scatter_of(const TrainingRunValidation& validation) {
  PageJson points = PageJson::array();
  for (const TrainingRunScore& row : validation.rows) {
    if (!row.error_pct) continue;
    points.push_back({{"x", row.run.step_time->value()},
                      {"y", row.simulated->value()},
                      {"name", row.run.id},
                      {"group", row.run.source.empty() ? row.run.gpu : row.run.source}});
  }
  return {{"title", "Measured and simulated"},
          {"points", std::move(points)},
          {"note", "logarithmic; right: measured, up: simulated; on the line both are equal"}};
}

PageJson rows_table(const TrainingRunValidation& validation) {
  PageJson table{{"title", "Rows"},
                 {"columns",
                  {"id", "source", "GPU", "GPUs", "framework", "precision", "model", "tp", "pp",
                   "dp", "micro-batch", "batch", "measured s", "simulated s", "error %",
                   "memory error %", "skipped"}},
                 {"rows", PageJson::array()}};
  for (const TrainingRunScore& row : validation.rows) {
    const TrainingRun& run = row.run;
    PageJson measured, simulated;
    if (run.step_time) measured = run.step_time->value();
    if (row.simulated) simulated = row.simulated->value();
    table["rows"].push_back({run.id, run.source, run.gpu, run.n_gpus, run.framework, run.precision,
                             run.model, run.layout.tensor, run.layout.pipeline, run.layout.data,
                             run.micro_batch, run.global_batch, measured, simulated,
                             figure(row.error_pct), figure(row.memory_error_pct), row.skipped});
  }
  return table;
}

PageJson groups_table(const TrainingRunValidation& validation) {
  PageJson table{{"title", "Errors by group"},
                 {"columns", {"by", "", "rows", "mean |error| %", "median %", "max %", "bias %"}},
                 {"rows", PageJson::array()}};
  for (const ErrorGroup& group : validation.groups) {
    const ErrorSummary& errors = group.errors;
    const std::string key = group.key.empty() ? "not stated" : group.key;
    table["rows"].push_back({group.by, key, errors.n, errors.mean_abs_error_pct,
                             errors.median_abs_error_pct, errors.max_abs_error_pct,
                             errors.bias_pct});
  }
  return table;
}

PageJson ranking_table(const TrainingRunValidation& validation) {
  PageJson table{{"title", "Ranking of layouts"},
                 {"columns", {"source", "model", "GPUs", "rows", "Spearman", "regret %"}},
                 {"rows", PageJson::array()}};
  for (const GroupRanking& group : validation.ranking.groups)
    table["rows"].push_back({group.source, group.model, group.n_gpus, group.rows,
                             figure(group.spearman), group.regret_pct});
  return table;
}

}  // namespace

std::string validation_page(const TrainingRunValidation& validation, const std::string& file,
                            const std::string& tessera_version) {
  PageJson page{{"title", "Measured steps of " + file + " beside simulated ones"}};
  page["summary"] = summary_of(validation);
  page["scatter"] = scatter_of(validation);
  page["tables"] = PageJson::array(
      {groups_table(validation), ranking_table(validation), rows_table(validation)});
  page["provenance"] = provenance_data(tessera_version);
  return html_page(page);
}

}  // namespace tessera
