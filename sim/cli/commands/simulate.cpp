#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "predictor/weights.h"
#include "sim/cli/commands.h"
#include "sim/cli/home.h"
#include "sim/cli/output.h"
#include "sim/cli/provenance_of.h"
#include "sim/config/load.h"
#include "sim/engine/engine.h"
#include "sim/formats/output_file.h"
#include "sim/formats/perfetto.h"
#include "sim/html/step_page.h"
#include "sim/plan/plan.h"
#include "sim/report/json.h"
#include "sim/report/metrics.h"
#include "sim/report/table.h"
#include "sim/report/timeline_svg.h"
#include "sim/scenario/names.h"

namespace tessera {
namespace {

struct SimulateOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format;
  std::string trace_file;
  std::string picture_file;
  std::string report_file;
  std::string resolved_file;
  bool timing = false;
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
  if (!options.resolved_file.empty()) {
    write_output_file(options.resolved_file, resolved_yaml(scenario));
  }
}

ExitCode run_simulate(const SimulateOptions& options) {
  Stopwatch stopwatch;
  const Scenario scenario = load_scenario(options.file, options.overrides, shipped_catalog());
  stopwatch.end_pass("read");
  const PredictorWeights weights = shipped_weights();
  const TimedProgram timed = plan_step(scenario, weights);
  stopwatch.end_pass("plan");
  const Timeline timeline = simulate(timed);
  stopwatch.end_pass("simulate");
  const StepReport report = measure(timed, timeline);
  write_files(options, scenario, timed, timeline);
  stopwatch.end_pass("report");

  const Provenance provenance = provenance_of(scenario, weights, timed);
  if (!options.report_file.empty())
    write_output_file(options.report_file, step_page(report, provenance, timed, timeline));
  print(options.format == "json"
            ? json_text(report, provenance, options.timing ? stopwatch.passes() : RunTiming())
            : table_text(report, provenance));
  for (const auto& [pass, time] : stopwatch.passes()) {
    spdlog::debug("{}: {:.1f} ms", pass, time.value() * 1e3);
  }
  return report.memory.fits ? ExitCode::ok : ExitCode::does_not_fit;
}

}  // namespace

void add_simulate_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand("simulate", "Simulate one step of a scenario");
  command->add_option("FILE", options->file, "scenario (YAML)")->required();
  add_set_option(*command, options->overrides);
  add_format_option(*command, options->format, {"table", "json"});
  command->add_option("--trace", options->trace_file,
                      "write the timeline for ui.perfetto.dev (.json, .json.gz)");
  command->add_option("--picture", options->picture_file, "write the timeline as SVG");
  command->add_option("--report", options->report_file,
                      "write a self-contained HTML report for a browser");
  command->add_option("--resolved", options->resolved_file,
                      "write the scenario with all defaults and files inlined");
  command->add_flag("--timing", options->timing, "put the times of our own run into the JSON");
  command->callback([options, &exit_code] { exit_code = run_simulate(*options); });
}

}  // namespace tessera
