#include "app/explain/stage_clocks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/explain/stage_pace.h"
#include "hw/power.h"
#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

/// Shares of the clock that are tried.
constexpr std::array<double, 11> kClocks = {1,   0.95, 0.9, 0.85, 0.8, 0.75,
                                            0.7, 0.65, 0.6, 0.55, 0.5};

/// What of a step crosses from the process that simulates it.
struct StageTimes {
  Seconds step;
  double gpus_j = -1;             ///< negative: not known
  std::vector<double> kernels_s;  ///< by stage, mean of its GPUs
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StageTimes, step, gpus_j, kernels_s)

constexpr std::array<TimeCategory, 5> kKernels = {
    TimeCategory::forward, TimeCategory::loss, TimeCategory::backward,
    TimeCategory::gradient_reduction, TimeCategory::optimizer};

StageTimes times_of(const TimedProgram& timed) {
  const StepReport report = run_step(timed).report;
  StageTimes times{
      .step = report.step_time,
      .gpus_j = report.energy ? report.energy->gpus_j : -1,
      .kernels_s = std::vector<double>(static_cast<std::size_t>(timed.program.layout.pipeline))};
  const int ranks = timed.program.layout.world_size();
  std::vector<std::size_t> place(static_cast<std::size_t>(ranks));
  std::size_t next = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (report.folding.of(rank) == rank) place[static_cast<std::size_t>(rank)] = next++;
  }
  const double share = static_cast<double>(timed.program.layout.pipeline) / ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto simulated = static_cast<std::size_t>(report.folding.of(rank));
    const TimeBreakdown& breakdown = report.by_rank[place[simulated]];
    const auto stage = static_cast<std::size_t>(position_of(rank, timed.program.layout).pipeline);
    for (const TimeCategory category : kKernels)
      times.kernels_s[stage] += share * breakdown[category].value();
  }
  return times;
}

class ClockSearch {
 public:
  ClockSearch(const TimedProgram& timed, Seconds longest, int spared)
      : timed_(timed),
        longest_(longest),
        paces_(static_cast<std::size_t>(timed.program.layout.pipeline),
               StagePace{.clock = 1, .spared = spared}) {}

  /// The slowest of the clocks that are tried; times only grow as clocks fall.
  void slow_down(std::size_t stage) {
    std::size_t fits = 0, fails = kClocks.size();
    while (fails - fits > 1) {
      const std::size_t middle = (fits + fails) / 2;
      paces_[stage].clock = kClocks[middle];
      (time() <= longest_ ? fits : fails) = middle;
    }
    paces_[stage].clock = kClocks[fits];
  }
  Seconds time() const {
    return forked([&] { return step_time_of(at_paces(timed_, paces_)); });
  }
  const StagePace& pace(std::size_t stage) const { return paces_[stage]; }

 private:
  const TimedProgram& timed_;
  Seconds longest_;
  std::vector<StagePace> paces_;
};

void check(const Scenario& scenario) {
  if (scenario.step.layout.pipeline < 2)
    throw InputError(
        {"parallelism.pipeline", "is 1: no stage waits for another", "plan clocks for a pipeline"});
  if (!scenario.perturbation.gpus.empty() || scenario.perturbation.kernel_jitter > 0)
    throw InputError({"perturbation", "has GPUs or kernels that differ already", "remove it"});
}

StageClock stage_clock(double clock, double slowed, double kernels_s, Watts idle,
                       double kernel_watts, double gpus, const ClockPlan& plan) {
  const double voltage = 1 - slowed + slowed * dynamic_power_share(clock) / clock;
  const auto energy = [&](Seconds step, double of_kernels) {
    return gpus * (idle.value() * step.value() + kernel_watts * kernels_s * of_kernels);
  };
  return {.clock = clock,
          .slowed = clock < 1 ? slowed : 0,
          .kernels_s = kernels_s,
          .energy_j = energy(plan.step, 1),
          .scheduled_j = energy(plan.scheduled_step, voltage)};
}

ClockPlan searched_plan(const TimedProgram& timed, const StageTimes& base, double tolerance,
                        int spared, const std::function<void()>& on_stage) {
  constexpr double kRounding = 1e-9;  // of a simulated time
  ClockSearch search(timed, base.step * (1 + tolerance + kRounding), spared);
  std::vector<std::size_t> order(base.kernels_s.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t stage) { return base.kernels_s[stage]; });
  for (const std::size_t stage : order) {
    search.slow_down(stage);
    on_stage();
  }
  ClockPlan plan{
      .step = base.step, .scheduled_step = search.time(), .spared = spared, .stages = {}};
  const double stages = static_cast<double>(order.size());
  const double gpus = static_cast<double>(timed.program.layout.world_size()) / stages;
  const Watts idle = idle_power(timed.topology.cluster().node.gpu);
  const double kernels = std::accumulate(base.kernels_s.begin(), base.kernels_s.end(), 0.0) * gpus;
  const double idle_j = idle.value() * base.step.value() * gpus * stages;
  const double kernel_watts = kernels > 0 ? (base.gpus_j - idle_j) / kernels : 0;
  for (std::size_t stage = 0; stage < order.size(); ++stage)
    plan.stages.push_back(stage_clock(search.pace(stage).clock,
                                      slowed_share(timed, static_cast<int>(stage), spared),
                                      base.kernels_s[stage], idle, kernel_watts, gpus, plan));
  return plan;
}

}  // namespace

double ClockPlan::energy_j() const {
  return std::accumulate(stages.begin(), stages.end(), 0.0,
                         [](double sum, const StageClock& of) { return sum + of.energy_j; });
}

double ClockPlan::scheduled_j() const {
  return std::accumulate(stages.begin(), stages.end(), 0.0,
                         [](double sum, const StageClock& of) { return sum + of.scheduled_j; });
}

ClockPlan plan_clocks(const Scenario& scenario, const PredictorWeights& weights, double tolerance,
                      const OnClock& on_clock) {
  check(scenario);
  const TimedProgram timed = plan_step(scenario, weights);
  const StageTimes base = forked([&] { return times_of(timed); });
  if (base.gpus_j < 0)
    throw InputError({"cluster.node.gpu.tdp",
                      "of " + scenario.cluster.node.gpu.id + " is not known",
                      "set it, or idle_power and busy_power"});
  const auto stages = static_cast<std::size_t>(timed.program.layout.pipeline);
  std::size_t done = 0;
  const auto on_stage = [&] {
    if (on_clock) on_clock(++done, 2 * stages);
  };
  ClockPlan whole = searched_plan(timed, base, tolerance, 0, on_stage);
  ClockPlan steady = searched_plan(timed, base, tolerance, timed.program.layout.pipeline, on_stage);
  return steady.scheduled_j() < whole.scheduled_j() ? steady : whole;
}

std::string table_text(const ClockPlan& plan) {
  std::string text = "stage  clock %  of kernels %  kernels of a GPU       J     J at that clock\n";
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const StageClock& of = plan.stages[stage];
    text +=
        formatted("%5zu %8.0f %13.0f %17s %9.4g %19.4g\n", stage, 100 * of.clock, 100 * of.slowed,
                  to_short_text(Seconds(of.kernels_s)).c_str(), of.energy_j, of.scheduled_j);
  }
  text += formatted("\nstep %s -> %s, GPUs %.4g J -> %.4g J a step (%.1f %% less)\n",
                    to_short_text(plan.step).c_str(), to_short_text(plan.scheduled_step).c_str(),
                    plan.energy_j(), plan.scheduled_j(),
                    100 * (1 - plan.scheduled_j() / plan.energy_j()));
  if (plan.spared > 0)
    text += "at the full clock: a stage's first " + std::to_string(plan.spared) +
            " forward and last " + std::to_string(plan.spared) +
            " backward passes,\nand what is no pass\n";
  return text;
}

std::string json_text(const ClockPlan& plan, const std::string& version) {
  using Json = nlohmann::ordered_json;
  Json stages = Json::array();
  for (const StageClock& of : plan.stages)
    stages.push_back({{"clock", of.clock},
                      {"slowed_share", of.slowed},
                      {"kernels_s", of.kernels_s},
                      {"gpus_j", of.energy_j},
                      {"scheduled_gpus_j", of.scheduled_j}});
  return Json{{"schema", "tessera.plan_clocks/1"},
              {"tessera_version", version},
              {"step_time_s", plan.step.value()},
              {"scheduled_step_time_s", plan.scheduled_step.value()},
              {"gpus_j", plan.energy_j()},
              {"scheduled_gpus_j", plan.scheduled_j()},
              {"spared_micro_batches", plan.spared},
              {"stages", std::move(stages)}}
             .dump(2) +
         "\n";
}

}  // namespace tessera
