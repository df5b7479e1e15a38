#include "app/html/run_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "app/html/data/provenance_data.h"
#include "app/html/page.h"
#include "hw/units/formatted.h"
#include "sim/longrun/run_picture.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

void add_figure(PageJson& summary, const char* name, const PageJson& value,
                const char* definition = "") {
  summary.push_back({{"name", name}, {"value", value}, {"definition", definition}});
}

/// What becomes of the batch while replicas are missing.
void add_batch(const RunAnswer& answer, PageJson& summary) {
  const int least = answer.runs.least_replicas * answer.replicas_together;
  add_figure(summary, "batch with fewer replicas",
             answer.batch == BatchWithout::kept ? "kept" : "smaller",
             "kept: those that are left take more micro-batches; smaller: a step trains fewer "
             "samples");
  add_figure(summary, "samples of a step, at least", answer.samples_with(least));
  add_figure(summary, "replicas, at least", least);
  add_figure(summary, "with fewer replicas [h]", answer.runs.fewer.mean);
}

PageJson summary_of(const RunAnswer& answer) {
  const RunStatistics& runs = answer.runs;
  PageJson summary = PageJson::array();
  add_figure(summary, "effective time [%]", 100 * runs.effective_ratio.mean,
             "training that counts over the wall-clock time, mean of the seeds");
  add_figure(summary, "in 4 of 5 runs from [%]", 100 * runs.effective_ratio.low);
  add_figure(summary, "to [%]", 100 * runs.effective_ratio.high);
  add_figure(summary, "goodput [%]", 100 * runs.effective_ratio.mean * answer.goodput_share(),
             "the same of all nodes, spares included");
  add_figure(summary, "days", answer.days);
  add_figure(summary, "seeds", runs.seeds);
  add_figure(summary, "GPUs", answer.gpus);
  add_figure(summary, "nodes of the job", answer.plan.nodes);
  add_figure(summary, "spares", answer.plan.spares);
  const bool fewer = answer.plan.elastic || answer.plan.replica_wise;
  add_figure(summary, "policy", answer.policy);
  if (fewer) add_batch(answer, summary);
  add_figure(summary, "failures", answer.failures);
  add_figure(summary, "stops", runs.stops.mean);
  if (runs.hours_to_failure)
    add_figure(summary, "time to failure [h]", runs.hours_to_failure->mean);
  add_figure(summary, "checkpoint [s]", answer.cost.total().value());
  add_figure(summary, "checkpoint every [s]", to_seconds(answer.plan.interval).value());
  add_figure(summary, "restart [s]", to_seconds(answer.plan.restart).value());
  add_figure(summary, "step [s]", answer.step_time.value());
  if (answer.bill.energy_mwh) add_figure(summary, "energy [MWh]", *answer.bill.energy_mwh);
  if (answer.bill.dollars) add_figure(summary, "cost [dollars]", *answer.bill.dollars);
  return summary;
}

/// What the first screen answers.
PageJson cards_of(const RunAnswer& answer) {
  const RunStatistics& runs = answer.runs;
  PageJson cards = PageJson::array();
  const auto add = [&](const char* name, const char* kind, const PageJson& value,
                       const std::string& detail) {
    cards.push_back({{"name", name}, {"kind", kind}, {"value", value}, {"detail", detail}});
  };
  add("effective time", "share", 100 * runs.effective_ratio.mean,
      formatted("4 of 5 runs: %.1f to %.1f %%", 100 * runs.effective_ratio.low,
                100 * runs.effective_ratio.high));
  add("goodput", "share", 100 * runs.effective_ratio.mean * answer.goodput_share(),
      formatted("of %d nodes and %d spares", answer.plan.nodes, answer.plan.spares));
  add("stops", "", std::to_string(std::llround(runs.stops.mean)),
      runs.hours_to_failure
          ? formatted("one in %.3g h, in %g days", runs.hours_to_failure->mean, answer.days)
          : formatted("in %g days", answer.days));
  add("checkpoint every", "seconds", to_seconds(answer.plan.interval).value(),
      answer.intervals && answer.intervals->best
          ? formatted("best of those simulated: %.3g min",
                      to_seconds(answer.intervals->best->interval).value() / 60)
          : "");
  if (answer.bill.energy_mwh)
    add("energy", "MWh", *answer.bill.energy_mwh,
        !answer.bill.power.has_hosts          ? "GPUs alone"
        : answer.bill.power.host_is_confirmed ? ""
                                              : "host_power is estimated, not confirmed");
  if (answer.bill.dollars)
    add("cost", "dollars", *answer.bill.dollars,
        answer.bill.price.empty() ? "at the catalog's price" : answer.bill.price);
  return cards;
}

/// Shares of `begin` to `end` by activity.
std::array<double, kActivityCount> shares_of(const std::vector<ActivitySpan>& timeline,
                                             Micros begin, Micros end) {
  std::array<double, kActivityCount> shares{};
  for (const ActivitySpan& span : timeline) {
    const Micros from = std::max(begin, span.begin), to = std::min(end, span.end);
    if (to > from) shares[static_cast<std::size_t>(span.activity)] += (to - from) / (end - begin);
  }
  return shares;
}

/// A bar for the whole run, and one for every day (or several, at most 62).
PageJson days_of_run(const std::vector<ActivitySpan>& timeline) {
  constexpr std::int64_t kMostRows = 62;
  PageJson ranks{
      {"classes", PageJson::array()}, {"colours", PageJson::array()}, {"rows", PageJson::array()}};
  for (int i = 0; i < kActivityCount; ++i) {
    const ActivityLook& look = look_of(static_cast<Activity>(i));
    ranks["classes"].push_back(look.words);
    ranks["colours"].push_back(look.colour);
  }
  const Micros end = timeline.back().end;
  const std::int64_t days = (end.value() + days_of(1).value() - 1) / days_of(1).value();
  const std::int64_t each = (days + kMostRows - 1) / kMostRows;
  const auto add_row = [&](const std::string& name, Micros from, Micros to) {
    ranks["rows"].push_back({{"name", name}, {"shares", shares_of(timeline, from, to)}});
  };
  add_row("first seed", Micros(0), end);
  for (std::int64_t day = 0; day < days; day += each)
    add_row("day " + std::to_string(day + 1), days_of(day), std::min(end, days_of(day + each)));
  return ranks;
}

PageJson causes_table(const RunStatistics& runs) {
  PageJson table{{"title", "Lost by cause"},
                 {"columns",
                  {"cause", "events", "stops", "lost work [h]", "slow [h]", "detection [h]",
                   "restart [h]", "waiting [h]", "all [h]"}},
                 {"rows", PageJson::array()}};
  for (const MeanCauseLoss& of : runs.causes)
    table["rows"].push_back({of.cause, of.events, of.stops, of.lost_h, of.slow_h, of.detection_h,
                             of.restart_h, of.waiting_h, of.total_h()});
  return table;
}

PageJson parts_table(const RunStatistics& runs) {
  PageJson table{{"title", "Hours"},
                 {"columns", {"part", "mean", "10th percentile", "90th percentile"}},
                 {"rows", PageJson::array()}};
  const std::array<std::pair<const char*, const SeedFigure*>, 8> parts = {
      {{"wall clock", &runs.wall},
       {"useful", &runs.useful},
       {"slow nodes, fewer nodes", &runs.slow},
       {"lost work", &runs.lost},
       {"checkpoints", &runs.checkpoint},
       {"detection", &runs.detection},
       {"restart", &runs.restart},
       {"waiting for nodes", &runs.waiting}}};
  for (const auto& [name, figure] : parts)
    table["rows"].push_back({name, figure->mean, figure->low, figure->high});
  return table;
}

}  // namespace

std::string run_page(const RunAnswer& answer, const std::string& tessera_version) {
  PageJson page{{"title", "Run of " + answer.scenario},
                {"cards", cards_of(answer)},
                {"summary", summary_of(answer)}};
  if (!answer.timeline.empty()) page["ranks"] = days_of_run(answer.timeline);
  page["tables"] = PageJson::array({parts_table(answer.runs), causes_table(answer.runs)});
  PageJson provenance = provenance_data(tessera_version);
  for (const std::string& note : answer.notes)
    provenance.push_back({{"name", "note"}, {"value", note}, {"definition", ""}});
  page["provenance"] = std::move(provenance);
  return html_page(page);
}

}  // namespace tessera
