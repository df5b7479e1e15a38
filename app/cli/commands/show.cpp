#include <memory>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/plan/plan.h"
#include "sim/report/text/memory_text.h"
#include "sim/report/text/program_text.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

struct ShowOptions {
  std::string pass;
  std::string file;
  std::vector<std::string> overrides;
};

/// The value that a pass hands to the next one, as text.
std::string value_after(const std::string& pass, const Scenario& scenario) {
  if (pass == "scenario") return resolved_yaml(scenario);
  if (pass == "graph") return to_text(build_model_graph(scenario.model, scenario.step));
  if (pass == "memory")
    return memory_text(build_program(scenario.model, scenario.step),
                       library_memory(scenario.step, scenario.cluster.node));
  if (pass == "program") return program_text(build_program(scenario.model, scenario.step));
  return timed_program_text(plan_step(scenario, shipped_weights()));
}

}  // namespace

void add_show_command(CLI::App& app) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* command = app.add_subcommand("show", "Print the value between two passes");
  command
      ->add_option(
          "PASS", options->pass,
          "scenario (resolved), graph (operators, tensors), program (ops per stage), "
          "timed (kernels with durations), memory (peak of every stage and what lives there)")
      ->required()
      ->check(CLI::IsMember({"scenario", "graph", "program", "timed", "memory"}));
  add_scenario_argument(*command, options->file);
  add_set_option(*command, options->overrides);
  command->callback([options] {
    print(value_after(options->pass,
                      load_scenario(options->file, options->overrides, shipped_catalog())));
  });
}

}  // namespace tessera
