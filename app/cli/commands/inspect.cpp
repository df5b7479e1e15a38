// Commands that look without simulating: check, explain, schema, list.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "app/cli/catalog_text.h"
#include "app/cli/commands.h"
#include "app/cli/gpu_text.h"
#include "app/cli/provenance_of.h"
#include "app/cli/terms.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"
#include "sim/config/fields/explain.h"
#include "sim/config/load.h"
#include "sim/config/suggest.h"
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
    {"scenarios", CatalogKind::scenarios},
    {"sweeps", CatalogKind::sweeps},
    {"neighbours", CatalogKind::neighbours},
    {"reliability", CatalogKind::reliability}};

/// Everything that is known of GPUs.
void list_gpus_long() {
  const Catalog catalog = shipped_catalog();
  std::vector<GpuSpec> gpus;
  for (const std::string& id : catalog.ids(CatalogKind::gpus))
    gpus.push_back(load_gpu(id, catalog));
  print(gpu_table(gpus, width_of(STDOUT_FILENO)));
}

/// With figures, or ids alone: what a script wants.
void list(const std::string& what, bool figures) {
  if (what == "schedules") return print(for_people(explain("training.schedule")));
  for (const auto& [name, kind] : kCatalogLists) {
    if (name != what) continue;
    const Catalog catalog = shipped_catalog();
    if (figures) return print(catalog_table(kind, catalog));
    for (const std::string& id : catalog.ids(kind)) print(id + "\n");
  }
}

/// What nothing is called, with the nearest of all that explain knows.
InputError unknown_word(const std::string& what, const Catalog& catalog) {
  std::vector<std::string> known = field_paths();
  for (const std::string& path : field_paths()) known.push_back(path.substr(0, path.find('.')));
  for (const std::string& term : term_names()) known.push_back(term);
  for (const auto& [name, kind] : kCatalogLists)
    for (const std::string& id : catalog.ids(kind)) known.push_back(id);
  std::ranges::sort(known);
  known.erase(std::ranges::unique(known).begin(), known.end());
  const bool is_near = !nearest(what, known).empty() || completions(what, known).size() > 1;
  return InputError({what, "no field of a scenario, no GPU, model or cluster, and no term",
                     is_near ? suggestion(what, known)
                             : "tessera explain lists the fields, tessera explain --help the "
                               "terms, tessera list gpus (models, clusters) the ids"});
}

/// A field by its path, or all that are called so: micro_batch, tp.
std::string explained_field(const std::string& what, const Catalog& catalog) {
  try {
    return explain(what);
  } catch (const InputError&) {
    if (what.find('.') != std::string::npos) throw;
  }
  std::string text;
  for (const std::string& path : paths_of_fields_called(what))
    text += (text.empty() ? "" : "\n") + explain(path);
  return text.empty() ? throw unknown_word(what, catalog) : text;
}

/// Of a GPU that the user describes. Scenarios and models are said to be none, in one line.
std::string facts_of_file(const std::string& file, const Catalog& catalog) {
  try {
    return gpu_facts(load_gpu(file, catalog));
  } catch (const InputError& error) {
    const auto lacks = [&](const std::string& field) {
      return std::ranges::any_of(error.problems(), [&](const Problem& problem) {
        return problem.what.starts_with(field + " is missing");
      });
    };
    if (!lacks("id") || !lacks("vendor") || !lacks("fp32")) throw;
    throw InputError({file, "describes no GPU",
                      "tessera check says what is wrong with a scenario, tessera show scenario "
                      "prints it"});
  }
}

/// Of a GPU (an id or a file), a model, a term, or a field of a scenario.
std::string explained(const std::string& what, const Catalog& catalog) {
  if (what.empty()) return explain(what);
  if (what.ends_with(".yaml") || what.ends_with(".yml")) return facts_of_file(what, catalog);
  if (catalog.has(CatalogKind::gpus, what)) return gpu_facts(load_gpu(what, catalog));
  if (catalog.has(CatalogKind::models, what)) return model_facts(what, catalog);
  if (catalog.has(CatalogKind::clusters, what) || catalog.has(CatalogKind::nodes, what))
    return "network of " + what + ": tessera topology show " + what +
           "\nin a scenario: cluster: " + what + "; its fields: tessera explain cluster\n";
  if (const auto term = term_text(what)) return *term;
  return explained_field(what, catalog);
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
      app.add_subcommand("explain", "Document a field of a scenario, a GPU, a model, or a term");
  command
      ->add_option("PATH", *path,
                   "parallelism.tensor, the id of a GPU or model, a GPU of yours (YAML), or a term "
                   "such as MFU; nothing = the scenario itself")
      ->type_name(kExplainable);
  command->footer("Terms: " + known_terms());
  command->callback([path] {
    const Catalog catalog = shipped_catalog();
    print(for_people(explained(*path, catalog)));
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
                    "figures as on a terminal: parameters, memory, peaks; gpus: all of them");
  command->callback([what, more] {
    if (*more && *what == "gpus") return list_gpus_long();
    list(*what, *more || is_terminal());
  });
}

}  // namespace tessera
