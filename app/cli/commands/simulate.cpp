#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "app/cli/commands.h"
#include "app/cli/provenance_of.h"
#include "app/html/step_page.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "app/shell/progress.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/engine/engine.h"
#include "sim/formats/chakra/chakra.h"
#include "sim/formats/output_file.h"
#include "sim/formats/perfetto.h"
#include "sim/formats/snapshot/step_snapshot.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/report/analysis/step_distribution.h"
#include "sim/report/analysis/straggler.h"
#include "sim/report/drawings/timeline_svg.h"
#include "sim/report/json.h"
#include "sim/report/text/table.h"
#include "sim/scenario/names.h"
#include "sim/step/run_step.h"

namespace tessera {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Straggler, rank, waited, longest)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepSample, time, straggler)

namespace {

struct SimulateOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format;
  std::string trace_file;
  std::string picture_file;
  std::string report_file;
  std::string resolved_file;
  std::string chakra_prefix;
  std::string snapshot_file;
  std::string chakra_version = "1.0.0";
  bool timing = false;
  bool notes = false;
  int steps = 0;  ///< 0: one, in full
  int jobs = 0;   ///< 0: one per core
};

/// Wall-clock time of the passes of this run, in order.
class Stopwatch {
 public:
  /// Ends the pass that began with construction or the last call.
  void end_pass(std::string name) {
    const auto now = std::chrono::steady_clock::now();
    passes_.emplace_back(std::move(name),
                         Seconds(std::chrono::duration<double>(now - since_).count()));
    since_ = now;
  }
  const RunTiming& passes() const { return passes_; }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  RunTiming passes_;
};

void write_files(const SimulateOptions& options, const Scenario& scenario,
                 const TimedProgram& timed, const Timeline& timeline) {
  if (!options.trace_file.empty()) write_perfetto_trace(options.trace_file, timed, timeline);
  if (!options.picture_file.empty()) {
    write_output_file(options.picture_file,
                      timeline_svg(timed, timeline, {.title = scenario.name}));
  }
  if (!options.chakra_prefix.empty())
    write_chakra(options.chakra_prefix, timed, options.chakra_version);
  if (!options.snapshot_file.empty())
    write_output_file(options.snapshot_file,
                      to_pickle(snapshot_of_step(timed, fullest_stage(timed))));
  if (!options.resolved_file.empty()) {
    write_output_file(options.resolved_file, resolved_yaml(scenario));
  }
}

/// The step with its memory plan, if the scenario asks for one.
TimedProgram planned(const Scenario& scenario, const PredictorWeights& weights) {
  if (scenario.memory.planner == MemoryPlanner::off) return plan_step(scenario, weights);
  PlannedSteps steps = plan_step_memory(scenario, weights);
  for (const StageMemoryPlan& plan : steps.memory.stages)
    if (!plan.feasible) spdlog::warn("no memory plan: {}", plan.infeasible);
  return std::move(steps.planned);
}

/// Time and straggler of one step.
StepSample sample_of(const TimedProgram& timed) {
  const Timeline timeline = simulate_without_memory_samples(timed);
  return {.time = timeline.step_time, .straggler = find_straggler(TimelineIndex(timed, timeline))};
}

/// Several steps that differ by what the seed of each draws; the first has the scenario's own.
ExitCode run_steps(const SimulateOptions& options) {
  const Scenario scenario = load_scenario(options.file, options.overrides, shipped_catalog());
  const PredictorWeights weights = shipped_weights();
  const TimedProgram planned = plan_step(scenario, weights);
  std::vector<std::function<StepSample()>> calls;
  for (int step = 0; step < options.steps; ++step) {
    calls.emplace_back([&planned, step] {
      TimedProgram timed = planned;
      timed.paces.seed += static_cast<std::uint64_t>(step) * 0x9e3779b97f4a7c15ULL;
      return sample_of(timed);
    });
  }
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::vector<StepSample> steps;
  StatusLine status;
  const auto show = [&](std::size_t done) {
    if (status.is_due()) status.show(done, calls.size(), "steps");
  };
  for (const auto& step : forked_each(calls, options.jobs > 0 ? options.jobs : cores, show))
    steps.push_back(step.value());
  const Provenance provenance = provenance_of(scenario, weights, planned);
  const StepDistribution distribution = distribution_of(steps);
  print(options.format == "json" ? json_text(distribution, provenance)
                                 : for_people(table_text(distribution, provenance)));
  return ExitCode::ok;
}

/// Commands that plan take a scenario's budget; here it would look as if it held.
void warn_of_budget_without_plan(const MemorySettings& memory) {
  if (memory.budget > Bytes(0) && memory.planner == MemoryPlanner::off)
    spdlog::warn(
        "memory.budget is what a plan keeps to, and memory.planner is off: the step runs without "
        "one; memory.limit holds it to so much");
}

ExitCode run_simulate(const SimulateOptions& options) {
  Stopwatch stopwatch;
  const Scenario scenario = load_scenario(options.file, options.overrides, shipped_catalog());
  warn_of_budget_without_plan(scenario.memory);
  stopwatch.end_pass("read");
  const PredictorWeights weights = shipped_weights();
  TimedProgram program = planned(scenario, weights);
  stopwatch.end_pass("plan");
  const bool draws_memory =
      !options.trace_file.empty() || !options.picture_file.empty() || !options.report_file.empty();
  const auto& [timed, timeline, report] =
      run_step(std::move(program), draws_memory ? Recording::every_change : Recording::peaks,
               [&](const std::string& pass) { stopwatch.end_pass(pass); });
  write_files(options, scenario, timed, timeline);

  const Provenance provenance = provenance_of(scenario, weights, timed);
  if (!options.report_file.empty())
    write_output_file(options.report_file, step_page(report, provenance, timed, timeline));
  if (options.format == "json")
    print(json_text(report, provenance, options.timing ? stopwatch.passes() : RunTiming()));
  else
    print_styled(table_text(report, provenance, text_style(options.notes)));
  for (const auto& [pass, time] : stopwatch.passes()) {
    spdlog::debug("{}: {:.1f} ms", pass, time.value() * 1e3);
  }
  return report.memory.fits ? ExitCode::ok : ExitCode::does_not_fit;
}

}  // namespace

void add_simulate_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand("simulate", "Simulate one step of a scenario");
  add_scenario_argument(*command, options->file);
  add_set_option(*command, options->overrides);
  add_format_option(*command, options->format, {"table", "json"});
  command->add_option("--trace", options->trace_file,
                      "write the timeline for ui.perfetto.dev (.json, .json.gz, .pftrace)");
  command->add_option("--picture", options->picture_file, "write the timeline as SVG");
  command->add_option("--report", options->report_file,
                      "write a self-contained HTML report for a browser");
  command->add_option("--resolved", options->resolved_file,
                      "write the scenario with all defaults and files inlined");
  command->add_option("--snapshot-out", options->snapshot_file,
                      "write the memory of the fullest GPU as torch.cuda.memory._dump_snapshot "
                      "does, for pytorch.org/memory_viz");
  command->add_option("--chakra", options->chakra_prefix,
                      "write PREFIX.<rank>.et, Chakra execution traces for ASTRA-sim");
  command->add_option("--chakra-version", options->chakra_version, "of their schema")
      ->check(CLI::IsMember({"1.0.0", "0.0.4"}))
      ->capture_default_str();
  add_notes_option(*command, options->notes);
  command->add_flag("--timing", options->timing, "put the times of our own run into the JSON");
  command
      ->add_option("--steps", options->steps,
                   "simulate so many steps, each with another draw of perturbation.kernel_jitter, "
                   "and print how their times are distributed")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--jobs", options->jobs, "processes for --steps; 0: one per core")
      ->check(CLI::Range(0, 10000));
  command->callback([options, &exit_code] {
    exit_code = options->steps > 0 ? run_steps(*options) : run_simulate(*options);
  });
}

}  // namespace tessera
