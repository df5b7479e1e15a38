#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/provenance_of.h"
#include "app/explain/explain_text.h"
#include "app/html/step_page.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "app/shell/progress.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/formats/output_file.h"
#include "sim/plan/plan.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

struct ExplainStepOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format;
  std::string report_file;
  double faster_pct = 10;
  bool notes = false;
};

StepExplanation explained_step(const ExplainStepOptions& options) {
  const Scenario scenario = load_scenario(options.file, options.overrides, shipped_catalog());
  const PredictorWeights weights = shipped_weights();
  const TimedProgram timed = plan_step(scenario, weights);
  StepExplanation explanation;
  // Ahead of the simulation in this process: its children have to be fresh.
  if (options.faster_pct > 0) {
    const int jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    StatusLine status;
    explanation.sensitivities = sensitivities(
        scenario, weights, 1 + options.faster_pct / 100, jobs,
        [&](std::size_t done, std::size_t all) { status.show(done, all, "simulations"); });
  }
  explanation.gpu = scenario.cluster.node.gpu.id;
  explanation.gpus = timed.program.layout.world_size();
  const StepRun run =
      run_step(timed, options.report_file.empty() ? Recording::peaks : Recording::every_change);
  explanation.story = tell_step(timed, run.timeline);
  explanation.provenance = provenance_of(scenario, weights, timed);
  if (!options.report_file.empty())
    write_output_file(options.report_file, step_page(run.report, explanation.provenance, timed,
                                                     run.timeline, {}, explanation.sensitivities));
  return explanation;
}

}  // namespace

void add_explain_step_command(CLI::App& app) {
  auto options = std::make_shared<ExplainStepOptions>();
  CLI::App* command =
      app.add_subcommand("explain-step", "Where a step's time goes, why, and what would help");
  add_scenario_argument(*command, options->file);
  add_set_option(*command, options->overrides);
  add_format_option(*command, options->format, {"table", "json"});
  command->add_option("--report", options->report_file,
                      "write the step's HTML report, with what would help");
  add_notes_option(*command, options->notes);
  command
      ->add_option("--faster", options->faster_pct,
                   "percent by which each part of the machine is made faster; 0: none")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  command->callback([options] {
    const StepExplanation explanation = explained_step(*options);
    print(options->format == "json" ? explanation_json(explanation)
                                    : for_people(explanation_text(explanation, options->notes)));
  });
}

}  // namespace tessera
