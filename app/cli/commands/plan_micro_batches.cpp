// `tessera plan micro-batches`: micro-batches of replicas that differ.
#include <memory>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/explain/replica_batches.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "app/shell/progress.h"
#include "hw/units/text.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

struct PlanMicroBatchesOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format;
};

}  // namespace

void add_plan_micro_batches_command(CLI::App& plan, ExitCode& exit_code) {
  auto options = std::make_shared<PlanMicroBatchesOptions>();
  CLI::App* command = plan.add_subcommand(
      "micro-batches",
      "Micro-batches of replicas that differ in speed, with which all end together");
  add_scenario_argument(*command, options->file);
  add_set_option(*command, options->overrides);
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options, &exit_code] {
    const Scenario scenario = load_scenario(options->file, options->overrides, shipped_catalog());
    StatusLine status;
    const BatchPlan batches =
        plan_batches(scenario, shipped_weights(), [&](int simulated, Seconds best) {
          status.show(std::to_string(simulated) + " steps simulated, best " + to_short_text(best));
        });
    exit_code = batches.chosen.fits ? ExitCode::ok : ExitCode::does_not_fit;
    print(options->format == "json" ? json_text(batches, TESSERA_VERSION)
                                    : for_people(table_text(batches)));
  });
}

}  // namespace tessera
