#include "app/explain/replica_batches.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>

#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BatchSplit, counts, ends_s, step, fits)

namespace {

constexpr int kMostMoves = 12;

/// When each replica's last backward kernel ends.
std::vector<double> ends_of(const StepRun& run) {
  const Program& program = run.timed.program;
  std::vector<double> ends(static_cast<std::size_t>(program.layout.data), 0);
  std::size_t next = 0;
  std::vector<double> of_rank(static_cast<std::size_t>(program.layout.world_size()), 0);
  for (int rank = 0; rank < program.layout.world_size(); ++rank) {
    if (run.timeline.folding.of(rank) != rank) continue;
    const std::vector<ProgramOp>& ops = program.program_of(rank).ops;
    for (std::size_t op = 0; op < ops.size(); ++op, ++next) {
      const bool computes = ops[op].kind == OpKind::kernels && ops[op].phase <= Phase::backward;
      double& end = of_rank[static_cast<std::size_t>(rank)];
      if (computes) end = std::max(end, run.timeline.ops[next].end.value());
    }
  }
  for (int rank = 0; rank < program.layout.world_size(); ++rank) {
    const auto replica = static_cast<std::size_t>(position_of(rank, program.layout).data);
    const auto simulated = static_cast<std::size_t>(run.timeline.folding.of(rank));
    ends[replica] = std::max(ends[replica], of_rank[simulated]);
  }
  return ends;
}

BatchSplit simulated_split(Scenario scenario, const std::vector<int>& counts,
                           const PredictorWeights& weights) {
  scenario.step.global_batch =
      scenario.step.micro_batch * std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  scenario.step.split.micro_batches_per_replica = counts;
  const TimedProgram timed = plan_step(scenario, weights);  // its problems are the user's
  return forked([&] {
    const StepRun run = run_step(timed);
    return BatchSplit{.counts = counts,
                      .ends_s = ends_of(run),
                      .step = run.report.step_time,
                      .fits = run.report.memory.fits};
  });
}

/// Where a replica's backward ends, as a line in its micro-batches.
struct ReplicaLine {
  double start_s = 0, each_s = 0;
  double end(int count) const { return start_s + each_s * count; }
};

class BatchSearch {
 public:
  BatchSearch(const Scenario& scenario, const PredictorWeights& weights, const OnBatchSplit& on)
      : scenario_(scenario), weights_(weights), on_split_(on) {}

  BatchPlan run() {
    const StepOptions& step = scenario_.step;
    std::vector<int> given = step.split.micro_batches_per_replica;
    if (given.empty())
      given.assign(static_cast<std::size_t>(step.layout.data),
                   static_cast<int>(step.micro_batches()));
    plan_.equal = plan_.chosen = simulate(given);
    consider(simulate(balanced(given)));
    for (int i = 0; i < kMostMoves; ++i)
      if (!consider(simulate(moved(plan_.chosen)))) break;
    return std::move(plan_);
  }

 private:
  /// The schedule runs micro-batches in groups of so many.
  int group() const {
    return scenario_.step.schedule == PipelineSchedule::interleaved_1f1b
               ? scenario_.step.layout.pipeline
               : 1;
  }

  BatchSplit simulate(const std::vector<int>& counts) {
    BatchSplit split = simulated_split(scenario_, counts, weights_);
    ++plan_.simulated;
    if (on_split_) on_split_(plan_.simulated, best());
    return split;
  }
  Seconds best() const { return plan_.chosen.counts.empty() ? Seconds(0) : plan_.chosen.step; }

  /// Whether `split` is the best so far.
  bool consider(BatchSplit split) {
    const bool fits = split.fits || !plan_.chosen.fits;
    if (!fits || split.step >= plan_.chosen.step) return false;
    plan_.chosen = std::move(split);
    return true;
  }

  std::vector<ReplicaLine> lines(int few, int many) {
    const auto replicas = static_cast<std::size_t>(scenario_.step.layout.data);
    const BatchSplit less = simulate(std::vector<int>(replicas, few));
    const BatchSplit more = simulate(std::vector<int>(replicas, many));
    std::vector<ReplicaLine> lines(replicas);
    for (std::size_t i = 0; i < replicas; ++i) {
      lines[i].each_s = (more.ends_s[i] - less.ends_s[i]) / (many - few);
      lines[i].start_s = less.ends_s[i] - lines[i].each_s * few;
    }
    return lines;
  }

  /// Group by group to the replica that would end first with it: no other choice ends earlier,
  /// where ends are lines.
  std::vector<int> balanced(const std::vector<int>& given) {
    const int all = std::accumulate(given.begin(), given.end(), 0);
    const int mean = all / static_cast<int>(given.size()) / group() * group();
    const std::vector<ReplicaLine> line = lines(std::max(mean, group()), mean + group());
    std::vector<int> counts(given.size(), group());
    for (int left = all - group() * static_cast<int>(counts.size()); left > 0; left -= group()) {
      std::size_t first = 0;
      for (std::size_t i = 1; i < counts.size(); ++i)
        if (line[i].end(counts[i] + group()) < line[first].end(counts[first] + group())) first = i;
      counts[first] += group();
    }
    return counts;
  }

  /// One group from the replica that ends last to the one that ends first.
  std::vector<int> moved(const BatchSplit& split) const {
    std::vector<int> counts = split.counts;
    std::size_t last = 0, first = 0;
    for (std::size_t i = 1; i < counts.size(); ++i) {
      const bool can_give = counts[i] > group();
      if (can_give && split.ends_s[i] > split.ends_s[last]) last = i;
      if (split.ends_s[i] < split.ends_s[first]) first = i;
    }
    if (counts[last] <= group()) return counts;
    counts[last] -= group();
    counts[first] += group();
    return counts;
  }

  const Scenario& scenario_;
  const PredictorWeights& weights_;
  const OnBatchSplit& on_split_;
  BatchPlan plan_;
};

/// "0-3, 6".
std::string ranges_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (end - i > 1) text += "-" + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text;
}

/// `list` as YAML of at most 78 columns.
std::string yaml_list(const std::vector<int>& list) {
  constexpr std::size_t kWidth = 78;
  std::string text, line = "    [";
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string item = std::to_string(list[i]) + (i + 1 < list.size() ? ", " : "]");
    if (line.size() + item.size() > kWidth) {
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = "     ";
    }
    line += item;
  }
  return text + line + "\n";
}

/// Replicas with equal numbers, a line for each such kind.
std::string rows_text(const BatchPlan& plan) {
  std::string text = "replicas                    micro-batches   before      end   before\n";
  std::vector<bool> told(plan.chosen.counts.size(), false);
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (told[i]) continue;
    std::vector<int> alike;
    double end = 0, before = 0;
    for (std::size_t j = i; j < told.size(); ++j) {
      const bool same = plan.chosen.counts[j] == plan.chosen.counts[i] &&
                        plan.equal.counts[j] == plan.equal.counts[i];
      if (told[j] || !same) continue;
      told[j] = true;
      alike.push_back(static_cast<int>(j));
      end = std::max(end, plan.chosen.ends_s[j]);
      before = std::max(before, plan.equal.ends_s[j]);
    }
    text += formatted("%-30.30s %10d %8d %8s %8s\n", ranges_text(alike).c_str(),
                      plan.chosen.counts[i], plan.equal.counts[i],
                      to_short_text(Seconds(end)).c_str(), to_short_text(Seconds(before)).c_str());
  }
  return text + "end: of the last backward pass; then replicas meet for their gradients\n";
}

void check_that_replicas_differ(const Scenario& scenario) {
  if (scenario.step.layout.data < 2)
    throw InputError({"parallelism.data", "is 1: there is one replica", "plan for two or more"});
  if (scenario.perturbation.gpus.empty())
    throw InputError({"perturbation.gpus", "is empty: all replicas are alike",
                      "say which are slower, as [{replicas: 3, slowdown: 1.3}]"});
  if (scenario.perturbation.kernel_jitter > 0)
    throw InputError({"perturbation.kernel_jitter", "makes every step another one", "remove it"});
}

}  // namespace

BatchPlan plan_batches(const Scenario& scenario, const PredictorWeights& weights,
                       const OnBatchSplit& on_split) {
  check_that_replicas_differ(scenario);
  return BatchSearch(scenario, weights, on_split).run();
}

std::string table_text(const BatchPlan& plan) {
  std::string text = rows_text(plan);
  text += formatted("\nstep %s -> %s (%.1f %% less), %d steps simulated\n",
                    to_short_text(plan.equal.step).c_str(), to_short_text(plan.chosen.step).c_str(),
                    100 * (1 - plan.chosen.step / plan.equal.step), plan.simulated);
  if (plan.chosen.counts == plan.equal.counts)
    return text + "no other numbers that were tried make it shorter\n";
  if (!plan.chosen.fits) text += "it needs more memory than a GPU has (tessera simulate)\n";
  return text + "\nparallelism:\n  micro_batches_per_replica:\n" + yaml_list(plan.chosen.counts);
}

std::string json_text(const BatchPlan& plan, const std::string& version) {
  using Json = nlohmann::ordered_json;
  const auto split = [](const BatchSplit& of) {
    return Json{{"micro_batches_per_replica", of.counts},
                {"backward_ends_s", of.ends_s},
                {"step_time_s", of.step.value()},
                {"fits", of.fits}};
  };
  return Json{{"schema", "tessera.plan_micro_batches/1"},
              {"tessera_version", version},
              {"before", split(plan.equal)},
              {"chosen", split(plan.chosen)},
              {"simulated_steps", plan.simulated}}
             .dump(2) +
         "\n";
}

}  // namespace tessera
