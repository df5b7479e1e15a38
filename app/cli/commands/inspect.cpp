// Commands that look without simulating: check, explain, schema, list.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/gpu_text.h"
#include "app/cli/provenance_of.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"
#include "sim/config/fields/explain.h"
#include "sim/config/load.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "workloads/parameter_count.h"

namespace tessera {
namespace {

/// What can be listed, with the catalog folder that answers; schedules live in the schema.
const std::vector<std::pair<std::string, CatalogKind>> kCatalogLists{
    {"gpus", CatalogKind::gpus},
    {"nodes", CatalogKind::nodes},
    {"clusters", CatalogKind::clusters},
    {"models", CatalogKind::models},
    {"frameworks", CatalogKind::frameworks},
    {"scenarios", CatalogKind::scenarios}};

void list_long(const std::string& what) {
  if (what != "gpus")
    throw InputError({"--long", "says more of GPUs alone", "tessera list gpus --long"});
  const Catalog catalog = shipped_catalog();
  std::vector<GpuSpec> gpus;
  for (const std::string& id : catalog.ids(CatalogKind::gpus))
    gpus.push_back(load_gpu(id, catalog));
  print(gpu_table(gpus));
}

void list(const std::string& what) {
  if (what == "schedules") return print(explain("training.schedule"));
  for (const auto& [name, kind] : kCatalogLists) {
    if (name != what) continue;
    for (const std::string& id : shipped_catalog().ids(kind)) print(id + "\n");
  }
}

/// Does all that a simulation does ahead of it: what that would refuse is refused here. Says how
/// large the model is.
std::string checked(const std::string& file, const std::vector<std::string>& overrides,
                    const PredictorWeights& weights) {
  const Scenario scenario = load_scenario(file, overrides, shipped_catalog());
  const TimedProgram timed = plan_step(scenario, weights);
  provenance_of(scenario, weights, timed);
  check_simulation(timed);
  return to_text(parameter_counts(scenario.model));
}

void check(const std::vector<std::string>& files, const std::vector<std::string>& overrides) {
  const PredictorWeights weights = shipped_weights();
  std::vector<Problem> problems;
  for (const std::string& file : files) {
    try {
      print(file + ": ok, " + checked(file, overrides, weights) + "\n");
    } catch (const InputError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto files = std::make_shared<std::vector<std::string>>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("check", "Say everything that is wrong with scenarios");
  command->add_option("FILE", *files, "scenarios: ids of tessera list scenarios, or files (YAML)")
      ->type_name(kScenarioId)
      ->required();
  add_set_option(*command, *overrides);
  command->callback([files, overrides] { check(*files, *overrides); });
}

void add_explain_command(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("explain", "Document a field of a scenario, or the figures of a GPU");
  command->add_option("PATH", *path,
                      "e.g. parallelism.tensor, or the id of a GPU; nothing = the scenario itself");
  command->callback([path] {
    const Catalog catalog = shipped_catalog();
    const bool gpu = !path->empty() && catalog.has(CatalogKind::gpus, *path);
    print(gpu ? gpu_facts(load_gpu(*path, catalog)) : explain(*path));
  });
}

void add_schema_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("schema", "Print the JSON Schema of scenario files, for editors");
  command->callback([] { print(json_schema()); });
}

void add_list_command(CLI::App& app) {
  auto what = std::make_shared<std::string>();
  auto more = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("list", "List what is shipped");
  std::vector<std::string> accepted{"schedules"};
  for (const auto& [name, kind] : kCatalogLists) accepted.push_back(name);
  command->add_option("WHAT", *what)->required()->check(CLI::IsMember(accepted));
  command->add_flag("--long", *more,
                    "gpus: memory, peaks by number format, power, die, form and price of each");
  command->callback([what, more] { *more ? list_long(*what) : list(*what); });
}

}  // namespace tessera
