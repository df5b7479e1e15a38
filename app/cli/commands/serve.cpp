// tessera serve: a page on this machine that simulates while a slider moves.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <unistd.h>

#include "app/cli/commands.h"
#include "app/cli/live_form.h"
#include "app/cli/provenance_of.h"
#include "app/html/step_page.h"
#include "app/serve/server.h"
#include "app/shell/home.h"
#include "app/shell/interrupt.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

constexpr unsigned kLongest = 60;  ///< s of an answer

struct ServedOptions {
  std::string file;
  std::vector<std::string> overrides;
  int port = 0;
};

/// What the pages are made of.
struct ServedScenario {
  std::string file;
  std::vector<std::string> overrides;
  Catalog catalog;
  PredictorWeights weights;
  LiveForm form;

  Scenario with(const RequestParameters& parameters) const {
    std::vector<std::string> all = overrides;
    for (std::string& chosen : live_overrides(form, parameters)) all.push_back(std::move(chosen));
    return load_scenario(file, all, catalog);
  }
};

PageJson problems_of(const InputError& error) {
  PageJson problems = PageJson::array();
  for (const Problem& problem : error.problems())
    problems.push_back({{"where", problem.where}, {"what", problem.what}, {"hint", problem.hint}});
  return {{"problems", std::move(problems)}};
}

/// The step that a request describes, or what is wrong with it. The simulation has a process of
/// its own, so that it can end in any way.
PageJson live_step(const ServedScenario& served, const RequestParameters& parameters) {
  try {
    const Scenario scenario = served.with(parameters);
    TimedProgram timed = plan_step(scenario, served.weights);
    const Provenance provenance = provenance_of(scenario, served.weights, timed);
    return forked([&] {
      alarm(kLongest);
      const StepRun run = run_step(std::move(timed), Recording::every_change);
      return PageJson{
          {"step", live_step_document(run.report, provenance, run.timed, run.timeline)}};
    });
  } catch (const InputError& error) {
    return problems_of(error);
  } catch (const ForkedCallError& error) {
    return problems_of(
        InputError(Problem{.where = "",
                           .what = std::string("the simulation did not end: ") + error.what(),
                           .hint = "choose a smaller job; an answer here may take 60 s"}));
  }
}

/// The whole report; what is wrong as text where there is none.
ServedAnswer whole_report(const ServedScenario& served, const RequestParameters& parameters) {
  try {
    const Scenario scenario = served.with(parameters);
    const StepRun run = run_step(scenario, served.weights, Recording::every_change);
    const Provenance provenance = provenance_of(scenario, served.weights, run.timed);
    return {.type = "text/html",
            .body = step_page(run.report, provenance, run.timed, run.timeline),
            .policy = "frame-ancestors 'none'"};
  } catch (const InputError& error) {
    return {.type = "text/plain", .body = std::string(error.what()) + "\n"};
  }
}

ServedAnswer scenario_file(const ServedScenario& served, const RequestParameters& parameters) {
  try {
    return {.type = "application/yaml",
            .body = resolved_yaml(served.with(parameters)),
            .save_as = "scenario.yaml"};
  } catch (const InputError& error) {
    return {.type = "text/plain", .body = std::string(error.what()) + "\n"};
  }
}

ServedAnswer answer_to(const ServedScenario& served, const std::string& path,
                       const RequestParameters& parameters) {
  alarm(2 * kLongest);  // this process answers one request
  if (path == "/")
    return {
        .type = "text/html", .body = live_page(served.form), .policy = "frame-ancestors 'none'"};
  if (path == "/step") {
    const PageJson step = live_step(served, parameters);
    return {.type = "application/json",
            .body = step.dump(-1, ' ', false, PageJson::error_handler_t::replace)};
  }
  if (path == "/report") return whole_report(served, parameters);
  if (path == "/scenario.yaml") return scenario_file(served, parameters);
  return {};
}

void run_serve(const ServedOptions& options) {
  const Catalog catalog = shipped_catalog();
  const Scenario scenario = load_scenario(options.file, options.overrides, catalog);
  const ServedScenario served{.file = options.file,
                              .overrides = options.overrides,
                              .catalog = catalog,
                              .weights = shipped_weights(),
                              .form = live_form(options.file, scenario, catalog)};
  const InterruptNote note;
  serve(
      {.port = options.port},
      [&](const std::string& path, const RequestParameters& parameters) {
        return answer_to(served, path, parameters);
      },
      [](const std::string& url) {
        print("open in a browser of this machine: " + url + "\nCtrl-C ends it\n");
      },
      [&] { return note.interrupted(); });
}

}  // namespace

void add_serve_command(CLI::App& app) {
  auto options = std::make_shared<ServedOptions>();
  options->file = "gpt3-xl_4xh100_pp4_1f1b";
  CLI::App* command = app.add_subcommand(
      "serve", "A local page: a step simulated while its sliders move; this machine alone");
  command->add_option("FILE", options->file, "id of tessera list scenarios, or a file (YAML)")
      ->type_name(kScenarioId)
      ->capture_default_str();
  add_set_option(*command, options->overrides);
  command->add_option("--port", options->port, "of 127.0.0.1; 0: any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->callback([options] { run_serve(*options); });
}

}  // namespace tessera
