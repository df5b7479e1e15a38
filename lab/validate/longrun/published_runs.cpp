#include "lab/validate/longrun/published_runs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "hw/units/formatted.h"
#include "lab/validate/longrun/published_table.h"
#include "sim/config/load.h"
#include "sim/longrun/checkpoint_cost.h"
#include "sim/longrun/failure_file.h"
#include "sim/plan/plan.h"
#include "sim/reliability/checkpoint_interval.h"
#include "sim/reliability/run_statistics.h"
#include "sim/reliability/spare_count.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int kGpusPerNode = 8;
constexpr int kSeeds = 20;
constexpr std::uint64_t kFirstSeed = 1;

Micros run_days(double count) {
  return to_micros(Seconds(count * 86'400));
}

/// A job of `nodes` that fails at `per_node_day` and restarts at once, for long enough to meet many
/// failures.
RunPlan failing_job(int nodes, double per_node_day) {
  RunPlan plan;
  plan.nodes = nodes;
  plan.length = run_days(2000 / (nodes * per_node_day));
  plan.interval = to_micros(Seconds(3600));
  plan.failures.classes = {{.name = "node", .per_node_day = per_node_day}};
  return plan;
}

double hours_to_failure(const RunPlan& plan) {
  const auto hours = statistics_of(simulate_runs(plan, kFirstSeed, kSeeds)).hours_to_failure;
  return hours ? hours->mean : 0;
}

class LongRuns {
 public:
  LongRuns(const fs::path& folder, const Catalog& catalog, const PredictorWeights& weights)
      : folder_(folder),
        configs_(catalog.folder(CatalogKind::models).parent_path()),
        catalog_(catalog),
        weights_(weights) {}

  LongRunScore goodput() const;
  LongRunScore times_to_failure() const;
  LongRunScore checkpoints() const;
  LongRunScore fault_trace() const;

 private:
  LongRunFigure goodput_of(const PublishedTable& table, const CsvTable::Row& row) const;
  double llama_3(double gpus, double length_days) const;
  static double closed_form_of_rsc();
  LongRunFigure checkpoint_of(const PublishedTable& table, const CsvTable::Row& row) const;
  CheckpointCost cost_of(const std::vector<std::string>& settings, BytesPerSecond storage) const;
  FailureModel llama_3_failures() const {
    return read_failures(configs_ / "reliability" / "llama3-405b.yaml", kGpusPerNode);
  }

  fs::path folder_;
  fs::path configs_;  ///< the shipped ones
  const Catalog& catalog_;
  const PredictorWeights& weights_;
};

CheckpointCost LongRuns::cost_of(const std::vector<std::string>& settings,
                                 BytesPerSecond storage) const {
  const Scenario scenario = load_scenario("gpt3-175b_1024xh100_tp8_pp8_dp16", settings, catalog_);
  return checkpoint_cost(scenario, plan_step(scenario, weights_), storage);
}

/// Interval and restart are not published. The interval is the best that simulation finds, the
/// restart the stall of a synchronous one at Meta (arXiv:2602.00277), the storage's rate Tectonic's
/// (section 3.3.1).
double LongRuns::llama_3(double gpus, double length_days) const {
  const PublishedTable events(folder_ / "detection_and_restart.csv");
  const double restart = events.number(
      events.find("study", "Meta 100K (FT-HSDP)", "method", "synchronous restart"), "seconds");
  const CheckpointCost cost = cost_of(
      {"model=llama-3.1-405b", "training.sequence_length=8192", "parallelism.pipeline=16",
       "parallelism.data=8", "parallelism.first_stage_layers=7", "parallelism.last_stage_layers=7"},
      BytesPerSecond(2e12));
  RunPlan plan;
  plan.nodes = static_cast<int>(gpus) / kGpusPerNode;
  plan.failures = llama_3_failures();
  plan.spares = spares_for(plan.failures, plan.nodes, 0.99);
  plan.length = run_days(length_days);
  plan.restart = to_micros(Seconds(restart));
  plan.checkpoint = to_micros(cost.total());
  plan.interval = to_micros(Seconds(300));
  const Seconds mean(86'400 / plan.failures.stops_per_day(plan.nodes));
  const auto best = best_interval(plan, young_interval(cost.total(), mean), kFirstSeed, 10);
  plan.interval = best.interval;
  return 100 * statistics_of(simulate_runs(plan, kFirstSeed, kSeeds)).effective_ratio.mean;
}

/// The formula against the simulation: 128 nodes at RSC-1's rate, a restart of 10 min, an interval
/// of 60 min, a checkpoint of 1 min.
double LongRuns::closed_form_of_rsc() {
  RunPlan plan = failing_job(128, 6.5e-3);
  plan.checkpoint = to_micros(Seconds(60));
  plan.restart = to_micros(Seconds(600));
  return 100 * statistics_of(simulate_runs(plan, kFirstSeed, kSeeds)).effective_ratio.mean;
}

/// Why a run cannot be simulated from what is published of it.
constexpr std::array<std::array<std::string_view, 2>, 5> kNoComponents = {{
    {"OPT-175B", "neither interval nor what a restart by hand took is stated (23 days, 90 stops)"},
    {"Gemini 1.0", "neither size nor failures are stated"},
    {"largest job before Gemini 1.0", "neither size nor failures are stated"},
    {"Alibaba before C4", "neither size nor failures are stated"},
    {"INTELLECT-1", "a share of compute over three continents; failures are not stated"},
}};

LongRunFigure LongRuns::goodput_of(const PublishedTable& table, const CsvTable::Row& row) const {
  const std::string& name = table.text(row, "run");
  LongRunFigure figure{.what = name};
  if (name == "RSC-1 closed form") {
    figure.what = "RSC's formula, 1024 GPUs";
    figure.measured = 100 * (1 - 128 * 6.5e-3 * (10 + 30) / (24 * 60)) / (1 + 1.0 / 60);
    figure.predicted = closed_form_of_rsc();
  } else if (name == "Llama 3 405B") {
    figure.what = name + ", " + table.text(row, "n_gpus") + " GPUs";
    figure.measured = table.number(row, "value_percent");
    figure.more_than = table.text(row, "bound") == "more than";
    figure.predicted = llama_3(table.number(row, "n_gpus"), table.number(row, "days"));
  } else {
    figure.skipped = "its components are not known here";
    for (const auto& [run, reason] : kNoComponents)
      if (run == name) figure.skipped = reason;
  }
  return figure;
}

LongRunScore LongRuns::goodput() const {
  const PublishedTable table(folder_ / "goodput_runs.csv");
  LongRunScore score{.title = "effective time [%]", .limit = 3, .in_points = true, .figures = {}};
  for (const CsvTable::Row& row : table.rows()) score.figures.push_back(goodput_of(table, row));
  return score;
}

/// Jobs of 1024 GPUs from the rate of jobs of 8, larger ones from that of the cluster.
LongRunScore LongRuns::times_to_failure() const {
  const PublishedTable table(folder_ / "failure_rates.csv");
  LongRunScore score{.title = "mean time to failure [h]", .limit = 15, .figures = {}};
  const double of_nodes =
      table.number(table.find("cluster", "RSC-1", "quantity", "failures per node (8 GPUs)"),
                   "value") /
      1000;
  double of_jobs = 0;
  for (const CsvTable::Row& row : table.rows()) {
    const std::string& quantity = table.text(row, "quantity");
    if (!quantity.starts_with("job MTTF")) continue;
    const bool is_days = table.text(row, "unit") == "days";
    const std::string& cluster = table.text(row, "cluster");
    const int nodes = static_cast<int>(table.number(row, "n_gpus")) / kGpusPerNode;
    LongRunFigure figure{.what = cluster + ", " + table.text(row, "n_gpus") + " GPUs",
                         .measured = table.number(row, "value") * (is_days ? 24 : 1)};
    if (cluster == "RSC-1" && nodes == 1) {
      of_jobs = 24 / figure.measured;
      figure.skipped = "the rate that the next ones are predicted from";
    } else if (cluster == "Llama 3 405B") {
      figure.skipped = "our rates are its own counts";
    } else {
      figure.predicted =
          hours_to_failure(failing_job(nodes, cluster == "RSC-1" ? of_jobs : of_nodes));
    }
    score.figures.push_back(std::move(figure));
  }
  return score;
}

LongRunFigure LongRuns::checkpoint_of(const PublishedTable& table, const CsvTable::Row& row) const {
  const std::string& method = table.text(row, "method");
  LongRunFigure figure{.what = table.text(row, "study") + (method.empty() ? "" : ", ") + method};
  const bool has_time =
      !table.text(row, "write_s").empty() || !table.text(row, "blocking_s").empty();
  const bool has_rate =
      table.text(row, "rate_GBps").find_first_not_of("0123456789.") == std::string::npos &&
      !table.text(row, "rate_GBps").empty();
  const bool is_bloom = table.text(row, "study") == "BLOOM-176B";
  if (!has_time) {
    figure.skipped = "no time is stated";
  } else if (!has_rate) {
    figure.skipped = "no bandwidth is stated";
  } else if (!is_bloom) {
    figure.skipped = "the job is not known here";
  } else {
    figure.what = "BLOOM-176B (its rate is bytes / time)";
    figure.measured = table.number(row, "write_s");
    figure.predicted = cost_of({"model=bloom-176b", "cluster=dgx-a100-x2", "cluster.node_count=48",
                                "parallelism.tensor=4", "parallelism.pipeline=12",
                                "parallelism.data=8", "parallelism.embedding_as_layer=true",
                                "parallelism.head_as_layer=true", "training.global_batch=512"},
                               BytesPerSecond(1e9 * table.number(row, "rate_GBps")))
                           .total()
                           .value();
  }
  return figure;
}

LongRunScore LongRuns::checkpoints() const {
  const PublishedTable table(folder_ / "checkpoints.csv");
  LongRunScore score{.title = "checkpoint [s]", .limit = 20, .figures = {}};
  for (const CsvTable::Row& row : table.rows()) score.figures.push_back(checkpoint_of(table, row));
  return score;
}

/// The whole cluster as a job of one node and its spares, so that every fault is met.
LongRunScore LongRuns::fault_trace() const {
  constexpr int kNodes = 400;
  const fs::path file = folder_ / "fault_trace_400_nodes.csv";
  const PublishedTable table(file);
  double repair_days = 0, last_day = 0;
  for (const CsvTable::Row& row : table.rows()) {
    repair_days += table.number(row, "repair_days");
    last_day = std::max(last_day, table.number(row, "end_day"));
  }
  RunPlan plan;
  plan.nodes = 1;
  plan.spares = kNodes - 1;
  plan.length = run_days(last_day);
  plan.interval = to_micros(Seconds(3600));
  plan.recorded = read_fault_trace(file, kNodes);
  const RunRecord run = simulate_run(plan, kFirstSeed);
  return {.title = "record of 400 nodes, replayed",
          .limit = 2,
          .figures = {{.what = "nodes in service [%]",
                       .measured = 100 * (1 - repair_days / (kNodes * last_day)),
                       .predicted = 100 * run.node_availability},
                      {.what = "node-hours out",
                       .measured = 24 * repair_days,
                       .predicted = in_hours(run.node_time_out)}}};
}

std::string long_run_line(const LongRunScore& score, const LongRunFigure& figure) {
  return formatted("  %-34.34s %s%9.4g %9.4g  %+7.2f %s%s\n", figure.what.c_str(),
                   figure.more_than ? ">" : " ", figure.measured, figure.predicted,
                   score.off(figure), score.in_points ? "points" : "%",
                   score.is_met(figure) ? "" : ", missed");
}

}  // namespace

double LongRunScore::off(const LongRunFigure& figure) const {
  return in_points ? figure.predicted - figure.measured
                   : 100 * (figure.predicted / figure.measured - 1);
}

bool LongRunScore::is_met(const LongRunFigure& figure) const {
  return std::abs(off(figure)) <= limit;
}

std::vector<LongRunScore> score_long_runs(const fs::path& folder, const Catalog& catalog,
                                          const PredictorWeights& weights) {
  const LongRuns runs(folder, catalog, weights);
  return {runs.goodput(), runs.times_to_failure(), runs.checkpoints(), runs.fault_trace()};
}

std::string long_run_table(const std::vector<LongRunScore>& scores) {
  std::string text = "published long runs from their components, nothing fitted\n";
  for (const LongRunScore& score : scores) {
    text += formatted("\n%-37.37s  measured      ours      off  (limit %g%s)\n",
                      score.title.c_str(), score.limit, score.in_points ? " points" : " %");
    for (const LongRunFigure& figure : score.figures)
      if (figure.skipped.empty()) text += long_run_line(score, figure);
    for (const LongRunFigure& figure : score.figures)
      if (!figure.skipped.empty())
        text += "  not scored: " + figure.what.substr(0, 64) + "\n    " + figure.skipped + "\n";
  }
  return text;
}

}  // namespace tessera
