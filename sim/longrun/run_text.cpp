#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "hw/units/formatted.h"
#include "hw/units/text.h"
#include "sim/longrun/run_answer.h"

namespace tessera {
namespace {

/// "35 s", "12.5 min", "3.20 h", "12.5 d".
std::string duration_text(Seconds time) {
  const double s = time.value();
  if (s < 120) return to_short_text(time);
  if (s < 120 * 60) return formatted("%.3g min", s / 60);
  return s < 96 * 3600.0 ? formatted("%.3g h", s / 3600) : formatted("%.4g d", s / 86'400);
}

std::string duration_text(Micros time) {
  return duration_text(to_seconds(time));
}

std::string hours_text(double hours) {
  return duration_text(Seconds(hours * 3600));
}

std::string line_of(const char* name, const std::string& value) {
  return formatted("%-22s ", name) + value + "\n";
}

/// "91.2 %   (80 % of runs: 90.5 to 92.0)".
std::string percent_text(const SeedFigure& figure, double factor = 1) {
  return formatted("%.2f %%   (4 of 5 runs: %.2f to %.2f)", 100 * factor * figure.mean,
                   100 * factor * figure.low, 100 * factor * figure.high);
}

/// `share` of what the job makes while it trains.
std::string rate_text(const RunAnswer& answer, double share) {
  if (answer.tokens_per_s > 0) return formatted("%.4g tokens/s", share * answer.tokens_per_s);
  return formatted("%.4g samples/s", share * answer.samples_per_s);
}

std::string head_text(const RunAnswer& answer) {
  std::string text = line_of("run", formatted("%.60s", answer.scenario.c_str()));
  text += line_of("cluster", formatted("%d GPUs %.30s, nodes: %d + %d spare", answer.gpus,
                                       answer.gpu.c_str(), answer.plan.nodes, answer.plan.spares));
  text += line_of("failures", formatted("%.56s", answer.failures.c_str()));
  text += line_of("simulated", formatted("%g days, %d seeds, policy %s", answer.days,
                                         answer.runs.seeds, answer.policy.c_str()));
  if (answer.watch.any()) text += line_of("noticed by", text_of(answer.watch));
  text += line_of("step", to_short_text(answer.step_time) + ", " + rate_text(answer, 1));
  return text;
}

/// What the run draws and costs, or why that is not known.
std::string bill_text(const RunAnswer& answer) {
  const RunBill& bill = answer.bill;
  std::string text;
  if (!bill.energy_mwh)
    text += line_of("energy", formatted("not known: %.30s has no tdp", answer.gpu.c_str()));
  if (bill.energy_mwh)
    text += line_of("energy", formatted("%.4g MWh, mean %.4g kW", *bill.energy_mwh,
                                        1e3 * *bill.energy_mwh / answer.runs.wall.mean));
  if (bill.energy_mwh && !bill.power.has_hosts)
    text += line_of("", "GPUs alone: the nodes' host_power is not known");
  if (bill.energy_mwh && !bill.power.host_is_confirmed)
    text += line_of("", "the nodes' host_power is estimated, not confirmed");
  if (!bill.dollars) return text + line_of("cost", "not known: no price (--prices FILE)");
  return text + line_of("cost", formatted("%.4g dollars, price: ", *bill.dollars) +
                                    (bill.price.empty() ? "the catalog's" : bill.price));
}

std::string result_text(const RunAnswer& answer) {
  const RunStatistics& runs = answer.runs;
  std::string text = line_of("effective time", percent_text(runs.effective_ratio));
  text += line_of("goodput", percent_text(runs.effective_ratio, answer.goodput_share()));
  text += line_of("", rate_text(answer, runs.effective_ratio.mean));
  text += line_of("stops", formatted("%.1f   (4 of 5 runs: %.0f to %.0f)", runs.stops.mean,
                                     runs.stops.low, runs.stops.high));
  text += line_of("time to failure",
                  runs.hours_to_failure ? hours_text(runs.hours_to_failure->mean) : "no failure");
  text += line_of("nodes in service",
                  formatted("%.3f %%, %.1f node-hours out", 100 * runs.node_availability.mean,
                            runs.node_hours_out.mean));
  if (answer.spares)
    text += line_of("spares for 99 %", formatted("%d; %.1f nodes are out on average",
                                                 answer.spares->spares, answer.spares->mean_out));
  text += bill_text(answer);
  if (answer.trace)
    text +=
        line_of("the whole record",
                formatted("%d nodes %.3f %% in service, %.1f node-hours out", answer.trace->nodes,
                          100 * answer.trace->availability(), in_hours(answer.trace->time_out)));
  if (!answer.goal) return text;
  const TokenGoal& goal = *answer.goal;
  text += line_of(formatted("%.4g tokens in", goal.tokens).c_str(),
                  !goal.hours ? "more than ten years"
                              : hours_text(goal.hours->mean) +
                                    "   (4 of 5 runs: " + hours_text(goal.hours->low) + " to " +
                                    hours_text(goal.hours->high) + ")");
  text += line_of("  without failures", hours_text(goal.hours_without_failures));
  if (answer.deadline_days > 0)
    text += line_of(formatted("  within %g days", answer.deadline_days).c_str(),
                    answer.in_time() ? "yes, in 9 of 10 runs" : "no, not in 9 of 10 runs");
  return text;
}

std::string checkpoint_text(const RunAnswer& answer) {
  const CheckpointCost& cost = answer.cost;
  const RunPlan& plan = answer.plan;
  std::string text = line_of(
      "checkpoint", to_short_text(cost.bytes) + ", " + duration_text(cost.total()) + " (" +
                        cost.slowest + "), the job waits " + duration_text(plan.checkpoint));
  text += line_of("restart", duration_text(plan.restart));
  text += line_of("checkpoint every", duration_text(plan.interval));
  if (plan.memory_interval.value() > 0)
    text += line_of("  in memory every", duration_text(plan.memory_interval) + ", the job waits " +
                                             duration_text(plan.memory_checkpoint));
  if (plan.local_interval.value() > 0)
    text += line_of("  on drives every", duration_text(plan.local_interval) + ", the job waits " +
                                             duration_text(plan.local_checkpoint));
  if (plan.full_every > 1)
    text += line_of("  incremental", formatted("%.3g %% of the bytes, one of %d whole",
                                               100 * answer.incremental_share, plan.full_every));
  if (plan.write_slowdown > 1)
    text += line_of("  beside a write",
                    formatted("steps take %.4f times as long", plan.write_slowdown));
  if (!answer.intervals) return text;
  const IntervalAdvice& advice = *answer.intervals;
  text +=
      line_of("  Young / Daly", duration_text(advice.young) + " / " + duration_text(advice.daly));
  if (advice.best)
    text += line_of("  simulated best",
                    duration_text(advice.best->interval) +
                        formatted(", effective time %.2f %%", 100 * advice.best->effective_ratio));
  return text;
}

/// A step on fewer replicas: "33 micro-batches each, 1.029 times as long".
std::string without_text(const RunAnswer& answer, const StepWithout& of) {
  const double longer = of.step / answer.step_time;
  const std::string what =
      answer.batch == BatchWithout::kept
          ? formatted("%lld micro-batches each", static_cast<long long>(of.micro_batches))
          : formatted("%lld samples", static_cast<long long>(answer.samples_with(of.left)));
  return line_of(formatted("  step with %d", of.left).c_str(),
                 what + formatted(", %.3f times as long", longer));
}

/// What becomes of the batch where the job trains on with fewer replicas.
std::string replicas_text(const RunAnswer& answer) {
  if (!answer.plan.elastic && !answer.plan.replica_wise) return "";
  const RunStatistics& runs = answer.runs;
  const int least = runs.least_replicas * answer.replicas_together;
  const double trained = runs.useful.mean + runs.slow.mean + runs.lost.mean;
  std::string text =
      line_of("fewer replicas", formatted("%.2f %% of the training, %d of %d at least",
                                          trained > 0 ? 100 * runs.fewer.mean / trained : 0.0,
                                          least, answer.replicas));
  if (answer.replicas_together > 1)
    text += line_of(
        "", formatted("%d leave together: they share experts or states", answer.replicas_together));
  text += line_of("  batch", answer.batch == BatchWithout::kept
                                 ? formatted("kept: %lld samples in every step",
                                             static_cast<long long>(answer.global_batch))
                                 : formatted("smaller: %lld of %lld samples at least",
                                             static_cast<long long>(answer.samples_with(least)),
                                             static_cast<long long>(answer.global_batch)));
  for (const StepWithout& of : answer.without) text += without_text(answer, of);
  return text;
}

std::string parts_text(const RunStatistics& runs) {
  const std::array<std::pair<const char*, const SeedFigure*>, 7> kParts = {
      {{"useful", &runs.useful},
       {"slow nodes, fewer nodes", &runs.slow},
       {"lost work", &runs.lost},
       {"checkpoints", &runs.checkpoint},
       {"detection", &runs.detection},
       {"restart", &runs.restart},
       {"waiting for nodes", &runs.waiting}}};
  std::string text = formatted("\n%-28s %12s %10s\n", "where the time goes", "hours", "%");
  for (const auto& [name, figure] : kParts)
    text += formatted("  %-26s %12.3f %10.3f\n", name, figure->mean,
                      100 * figure->mean / runs.wall.mean);
  return text;
}

std::string causes_text(const RunStatistics& runs) {
  constexpr std::size_t kMost = 20;
  if (runs.causes.empty()) return "";
  std::string text = formatted("\n%-28s %8s %8s %8s %8s %8s\n", "lost by cause [h]", "stops",
                               "work", "stopped", "slow", "all");
  MeanCauseLoss rest{.cause = "others"};
  for (std::size_t i = 0; i < runs.causes.size(); ++i) {
    const MeanCauseLoss& of = runs.causes[i];
    if (i < kMost) {
      text += formatted("  %-26.26s %8.1f %8.2f %8.2f %8.2f %8.2f\n", of.cause.c_str(), of.stops,
                        of.lost_h, of.detection_h + of.restart_h + of.waiting_h, of.slow_h,
                        of.total_h());
    } else {
      rest.stops += of.stops;
      rest.lost_h += of.total_h();
    }
  }
  if (runs.causes.size() > kMost)
    text += formatted("  %-26s %8.1f %35.2f\n", "others", rest.stops, rest.lost_h);
  return text;
}

constexpr std::array<char, kActivityCount> kLetters = {'#', 'c', 'd', 'r', 'w', 'x'};

}  // namespace

std::vector<ActivitySpan> joined_spans(const std::vector<ActivitySpan>& timeline) {
  std::vector<ActivitySpan> joined;
  for (ActivitySpan span : timeline) {
    if (span.activity == Activity::checkpoint) span.activity = Activity::training;
    if (!joined.empty() && joined.back().activity == span.activity) {
      joined.back().end = span.end;
    } else {
      joined.push_back(span);
    }
  }
  return joined;
}

std::string timeline_text(const std::vector<ActivitySpan>& timeline) {
  constexpr std::int64_t kMostLines = 31, kColumns = 48;
  if (timeline.empty()) return "";
  const double days = in_hours(timeline.back().end) / 24;
  const auto per_line = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(days / static_cast<double>(kMostLines))));
  const Micros cell = days_of(per_line) / kColumns;
  const auto cells =
      static_cast<std::size_t>((timeline.back().end.value() + cell.value() - 1) / cell.value());
  std::vector<std::array<std::int64_t, kActivityCount>> time(cells);
  for (const ActivitySpan& span : timeline) {
    for (Micros at = span.begin; at < span.end;) {
      const std::int64_t number = at.value() / cell.value();
      const Micros end = std::min(span.end, cell * (number + 1));
      time[static_cast<std::size_t>(number)][static_cast<std::size_t>(span.activity)] +=
          (end - at).value();
      at = end;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < cells; ++i) {
    if (i % kColumns == 0)
      text +=
          formatted("%sday %4lld  ", i == 0 ? "" : "\n",
                    static_cast<long long>(static_cast<std::int64_t>(i) / kColumns * per_line + 1));
    const auto most = std::ranges::max_element(time[i]);
    text += kLetters[static_cast<std::size_t>(most - time[i].begin())];
  }
  return text + "\n";
}

std::string table_text(const RunAnswer& answer) {
  std::string text = head_text(answer) + "\n" + result_text(answer) + "\n" +
                     checkpoint_text(answer) + replicas_text(answer) + parts_text(answer.runs) +
                     causes_text(answer.runs);
  text += "\nfirst seed: # trains, x lost, c checkpoint, d detection, r restart, w waits\n";
  text += timeline_text(answer.timeline);
  for (const std::string& note : answer.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace tessera
