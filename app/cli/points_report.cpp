#include "app/cli/points_report.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "sim/scenario/names.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr std::size_t kMostPoints = 5000;  ///< a browser draws these at once

/// "8" is a number, "8 GiB" and "bf16" are words.
PageJson number_or_word(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' ? PageJson(value) : PageJson(text);
}

/// Columns in which all rows agree say nothing.
void drop_constant_columns(PointsReport& report) {
  for (std::size_t column = report.columns.size(); column-- > 0;) {
    std::set<std::string> values;
    for (const auto& row : report.rows) values.insert(row[column].dump());
    if (values.size() > 1 || report.columns[column].better != 0) continue;
    const auto at = static_cast<std::ptrdiff_t>(column);
    report.columns.erase(report.columns.begin() + at);
    for (auto& row : report.rows) row.erase(row.begin() + at);
  }
}

std::vector<PageJson> row_of(const SearchCase& of, const LayoutResult& result) {
  const Layout& layout = result.layout;
  const auto dollars = of.economy.dollars(of.gpus, result.step_time);
  return {of.model,
          of.cluster,
          of.gpus,
          layout.tensor,
          layout.pipeline,
          layout.virtual_stages,
          layout.data,
          layout.context,
          layout.expert,
          layout.micro_batch,
          static_cast<int>(layout.sharding),
          layout.planned ? "plan" : name_of(layout.recompute),
          name_of(layout.schedule),
          layout.sequence_parallel ? "yes" : "no",
          layout.ends_as_layers ? "yes" : "no",
          result.step_time.value() * 1e3,
          static_cast<double>(result.memory.total().value()) / kGiB,
          result.tokens_per_s / of.gpus,
          100 * result.mfu,
          100 * result.bubble_fraction,
          dollars ? PageJson(*dollars) : PageJson(nullptr)};
}

}  // namespace

PointsReport points_of(const std::vector<SearchCase>& cases) {
  PointsReport report{.title = "Layouts of " + cases.front().model + " on " + cases.front().gpu};
  report.columns = {{"model", 0},          {"cluster", 0},
                    {"GPUs", 0},           {"tensor", 0},
                    {"pipeline", 0},       {"chunks", 0},
                    {"data", 0},           {"context", 0},
                    {"expert", 0},         {"micro-batch", 0},
                    {"ZeRO", 0},           {"recompute", 0},
                    {"schedule", 0},       {"sequence parallel", 0},
                    {"ends as layers", 0}, {"step time [ms]", -1},
                    {"memory [GiB]", -1},  {"tokens/s/GPU", 1},
                    {"MFU [%]", 1},        {"bubble [%]", -1},
                    {"USD/step", -1}};
  report.note =
      "Layouts that were simulated and fit; those that bounds show to be slower were not "
      "simulated. A click chooses a point.";
  for (const SearchCase& of : cases) {
    report.summary.emplace_back("layouts simulated of " + of.model + " on " +
                                    std::to_string(of.gpus) + " GPUs of " + of.cluster,
                                of.found.counts.simulated);
    for (const LayoutResult& layout : of.found.fitting) {
      if (report.rows.size() >= kMostPoints) break;
      report.labels.push_back(to_text(layout.layout));
      report.rows.push_back(row_of(of, layout));
    }
  }
  drop_constant_columns(report);
  return report;
}

namespace {

/// A result as a column: its name in an answer, in words, and what its figure is multiplied by.
struct Metric {
  const char* field;
  const char* words;
  int better;
  double factor = 1;
};
constexpr Metric kMetrics[] = {{"step_time_s", "step time [ms]", -1, 1e3},
                               {"device_memory_bytes", "memory [GiB]", -1, 1 / kGiB},
                               {"tokens_per_s_per_gpu", "tokens/s/GPU", 1},
                               {"mfu", "MFU [%]", 1, 100},
                               {"bubble_fraction", "bubble [%]", -1, 100},
                               {"exposed_communication_s", "exposed communication [ms]", -1, 1e3},
                               {"gpus", "GPUs", 0}};
constexpr const char* kFits = "fits";

/// "training.micro_batch" as "micro batch"; all of it where several fields end alike.
std::vector<std::string> words_of(const std::vector<std::string>& fields) {
  const auto last = [](const std::string& field) { return field.substr(field.rfind('.') + 1); };
  std::vector<std::string> words;
  for (const std::string& field : fields) {
    const auto alike = std::ranges::count(fields, last(field), last);
    words.push_back(alike > 1 ? field : last(field));
    std::ranges::replace(words.back(), '_', ' ');
  }
  return words;
}

PageJson metric_of(const PageJson& answer, const Metric& metric) {
  const PageJson value = answer.value(metric.field, PageJson(nullptr));
  return value.is_number() && metric.factor != 1 ? PageJson(value.get<double>() * metric.factor)
                                                 : value;
}

/// "tensor 2, pipeline 4": what was chosen.
std::string label_of_point(const PointsReport& report, const std::vector<PageJson>& row) {
  std::string label;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const PointColumn& column = report.columns[i];
    if (column.better != 0 || !column.input) continue;
    const std::string value = row[i].is_string() ? row[i].get<std::string>() : row[i].dump();
    const bool whole = row[i].is_number() && value.ends_with(".0");
    label += (label.empty() ? "" : ", ") + column.name + " " +
             (whole ? value.substr(0, value.size() - 2) : value);
  }
  return label;
}

/// Columns without rows.
PointsReport empty_report_of(const SweepIdentity& identity) {
  PointsReport report{.title = "Sweep " + identity.name};
  for (const std::string& words : words_of(identity.columns)) report.columns.push_back({words, 0});
  for (const Metric& metric : kMetrics)
    report.columns.push_back({metric.words, metric.better, false});
  report.columns.push_back({kFits, 0, false});
  report.fits = kFits;
  report.note = "Simulated points; hollow ones do not fit. A click chooses a point.";
  return report;
}

}  // namespace

PointsReport points_of(SweepStore& store) {
  PointsReport report = empty_report_of(store.identity());
  std::int64_t others = 0;
  store.for_each_point([&](const StoredPoint& point) {
    if (point.outcome != PointOutcome::ok || report.rows.size() >= kMostPoints) {
      ++others;
      return;
    }
    const PageJson answer = PageJson::parse(point.answer);
    std::vector<PageJson> row;
    for (const std::string& value : point.values) row.push_back(number_or_word(value));
    for (const Metric& metric : kMetrics) row.push_back(metric_of(answer, metric));
    row.push_back(answer.value("fits", false) ? "fits" : "too large");
    report.rows.push_back(std::move(row));
  });
  report.summary = {{"points simulated", report.rows.size()}, {"points not shown", others}};
  drop_constant_columns(report);
  for (const auto& row : report.rows) report.labels.push_back(label_of_point(report, row));
  return report;
}

}  // namespace tessera
