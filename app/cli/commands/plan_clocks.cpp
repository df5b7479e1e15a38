// `tessera plan clocks`: slower clocks for pipeline stages that wait.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/explain/stage_clocks.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "app/shell/progress.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

struct PlanClocksOptions {
  std::string file;
  std::vector<std::string> overrides;
  double tolerance = 0.002;
  std::string format;
};

}  // namespace

void add_plan_clocks_command(CLI::App& plan) {
  auto options = std::make_shared<PlanClocksOptions>();
  CLI::App* command = plan.add_subcommand(
      "clocks",
      "Slower clocks of pipeline stages that wait, with which the step hardly takes longer");
  add_scenario_argument(*command, options->file);
  add_set_option(*command, options->overrides);
  command
      ->add_option("--tolerance", options->tolerance,
                   "share that the step may take longer, as 0.01")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options] {
    const Scenario scenario = load_scenario(options->file, options->overrides, shipped_catalog());
    StatusLine status;
    const ClockPlan clocks =
        plan_clocks(scenario, shipped_weights(), options->tolerance,
                    [&](std::size_t done, std::size_t all) { status.show(done, all, "clocks"); });
    print(options->format == "json" ? json_text(clocks, TESSERA_VERSION)
                                    : for_people(table_text(clocks)));
  });
}

}  // namespace tessera
