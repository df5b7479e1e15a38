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
          layout.sequence_parallel ? 1 : 0,
          layout.ends_as_layers ? 1 : 0,
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
  report.columns = {{"model", 0},
                    {"cluster", 0},
                    {"GPUs", 0},
                    {"tp", 0},
                    {"pp", 0},
                    {"chunks", 0},
                    {"dp", 0},
                    {"cp", 0},
                    {"ep", 0},
                    {"micro-batch", 0},
                    {"ZeRO", 0},
                    {"recompute", 0},
                    {"schedule", 0},
                    {"sp", 0},
                    {"ends as layers", 0},
                    {"step time [ms]", -1},
                    {"memory [GiB]", -1},
                    {"tokens/s/GPU", 1},
                    {"MFU [%]", 1},
                    {"bubble [%]", -1},
                    {"USD/step", -1}};
  report.note =
      "Layouts that were simulated and fit; those that bounds show to be slower were not "
      "simulated. A click chooses a point.";
  for (const SearchCase& of : cases) {
    report.summary.emplace_back(
        of.model + " on " + std::to_string(of.gpus) + " GPUs of " + of.cluster + ": simulated",
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

PointsReport points_of(SweepStore& store) {
  const SweepIdentity& identity = store.identity();
  PointsReport report{.title = "Sweep " + identity.name};
  for (const std::string& column : identity.columns) report.columns.push_back({column, 0});
  const std::pair<const char*, int> metrics[] = {
      {"step_time_s", -1}, {"device_memory_bytes", -1}, {"tokens_per_s_per_gpu", 1},
      {"mfu", 1},          {"bubble_fraction", -1},     {"exposed_communication_s", -1},
      {"gpus", 0}};
  for (const auto& [name, better] : metrics) report.columns.push_back({name, better});
  report.columns.push_back({"fits", 0});
  report.note = "Simulated points, whether they fit or not. A click chooses a point.";
  std::int64_t others = 0;
  store.for_each_point([&](const StoredPoint& point) {
    if (point.outcome != PointOutcome::ok || report.rows.size() >= kMostPoints) {
      ++others;
      return;
    }
    const PageJson answer = PageJson::parse(point.answer);
    std::vector<PageJson> row;
    for (const std::string& value : point.values) row.push_back(number_or_word(value));
    for (const auto& [name, better] : metrics) row.push_back(answer.value(name, PageJson(nullptr)));
    row.push_back(answer.value("fits", false) ? "fits" : "too large");
    report.labels.push_back("point " + std::to_string(point.number));
    report.rows.push_back(std::move(row));
  });
  report.summary = {{"points simulated", report.rows.size()}, {"points not shown", others}};
  drop_constant_columns(report);
  return report;
}

}  // namespace tessera
