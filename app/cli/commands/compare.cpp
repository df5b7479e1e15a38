#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/provenance_of.h"
#include "app/explain/comparison.h"
#include "app/html/comparison_page.h"
#include "app/html/data/drawn_step.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/formats/input_file.h"
#include "sim/formats/output_file.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/report/json.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

struct CompareOptions {
  std::string a;
  std::string b;
  std::vector<std::string> overrides;
  std::vector<std::string> overrides_of_b;
  std::string format;
  std::string report_file;
  bool notes = false;
};

bool is_scenario(const std::filesystem::path& file) {
  return file.extension() == ".yaml" || file.extension() == ".yml" ||
         shipped_catalog().has(CatalogKind::scenarios, file.string());
}

/// A side: its figures, and what to draw of it where it was simulated for a report.
struct ComparedSide {
  StepProfile profile;
  nlohmann::ordered_json drawing = nullptr;
};

/// In a process of its own: there may be two of them. JSON: `result`, and `drawing` or null.
nlohmann::ordered_json simulated_side(const std::string& file,
                                      const std::vector<std::string>& overrides,
                                      const PredictorWeights& weights, bool drawn) {
  const Scenario scenario = load_scenario(file, overrides, shipped_catalog());
  const TimedProgram timed = plan_step(scenario, weights);
  return forked([&] {
    const StepRun run = run_step(timed, drawn ? Recording::every_change : Recording::peaks);
    nlohmann::ordered_json side{
        {"result", json_text(run.report, provenance_of(scenario, weights, timed))},
        {"drawing", nullptr}};
    if (drawn) side["drawing"] = drawn_step(timed, run.timeline);
    return side;
  });
}

ComparedSide side_of_file(const std::string& file, const std::vector<std::string>& overrides,
                          const PredictorWeights& weights, bool drawn) {
  if (!is_scenario(file))
    return {is_trace(file) ? profile_of_trace(read_kineto(file), file)
                           : profile_of_result(read_input_file(file), file)};
  nlohmann::ordered_json side = simulated_side(file, overrides, weights, drawn);
  return {profile_of_result(side["result"].get<std::string>(), file), std::move(side["drawing"])};
}

}  // namespace

void add_compare_command(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Put two steps beside each other");
  const char* kinds =
      "scenario (id or YAML), result of simulate (JSON), or trace of torch.profiler (JSON, .gz)";
  command->add_option("A", options->a, kinds)->type_name(kScenarioId)->required();
  command->add_option("B", options->b, kinds)->type_name(kScenarioId)->required();
  add_set_option(*command, options->overrides);
  command
      ->add_option("--set-b", options->overrides_of_b,
                   "path=value; overrides a field of the scenario B alone; repeatable")
      ->type_name(kFieldPath)
      ->allow_extra_args(false);
  command->add_option("--report", options->report_file, "write a self-contained HTML report");
  add_notes_option(*command, options->notes);
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options] {
    const PredictorWeights weights = shipped_weights();
    std::vector<std::string> of_b = options->overrides;
    of_b.insert(of_b.end(), options->overrides_of_b.begin(), options->overrides_of_b.end());
    const bool drawn = !options->report_file.empty();
    const ComparedSide a = side_of_file(options->a, options->overrides, weights, drawn);
    const ComparedSide b = side_of_file(options->b, of_b, weights, drawn);
    const StepComparison comparison = compare_steps(a.profile, b.profile);
    if (drawn)
      write_output_file(options->report_file,
                        comparison_page(comparison, TESSERA_VERSION, {a.drawing, b.drawing}));
    print(options->format == "json" ? comparison_json(comparison)
                                    : for_people(comparison_text(comparison, options->notes)));
  });
}

}  // namespace tessera
