#include <algorithm>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <spdlog/spdlog.h>

#include "app/cli/commands.h"
#include "app/cli/commands/memory_budget.h"
#include "app/cli/commands/plan_frameworks.h"
#include "app/cli/provenance_of.h"
#include "app/html/memory_plan_page.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "app/shell/progress.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/formats/output_file.h"
#include "sim/plan/memory/plan_progress.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/report/text/memory_plan_text.h"
#include "sim/scenario/names.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

struct PlanMemoryOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string budget;
  std::string budgets;
  std::string planner;
  bool no_swap = false;
  bool fast = false;
  std::string format;
  std::string picture_file;
  std::string report_file;
  std::string framework;
};

/// What a text after --budget or --budgets says, for one scenario: bytes, or a share of what its
/// fullest stage holds above its states without a plan.
class BudgetReader {
 public:
  BudgetReader(const Scenario& scenario, const PredictorWeights& weights)
      : scenario_(scenario), weights_(weights) {}

  Bytes one(const std::string& text) {
    if (const auto share = share_after("--budget", text)) return of_share(*share);
    return parsed_option("--budget", text, parse_bytes);
  }

  /// "20GiB:80GiB:5GiB" or "30%:90%:10%": first, last, step.
  std::vector<Bytes> range(const std::string& text) {
    std::vector<double> parts;
    int shares = 0;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(':', begin), text.size());
      const std::string part = text.substr(begin, end - begin);
      const std::optional<double> share = share_after("--budgets", part);
      shares += share ? 1 : 0;
      parts.push_back(
          share ? *share
                : static_cast<double>(parsed_option("--budgets", part, parse_bytes).value()));
      begin = end + 1;
    }
    constexpr double kMost = 1000;
    const bool valid = parts.size() == 3 && (shares == 0 || shares == 3) && parts[2] > 0 &&
                       parts[0] <= parts[1] && (parts[1] - parts[0]) / parts[2] < kMost;
    if (!valid)
      throw InputError(
          {"--budgets", "is " + text, "give first:last:step, as 20GiB:80GiB:5GiB or 30%:90%:10%"});
    const int steps = static_cast<int>((parts[1] - parts[0]) / parts[2] + 1e-6);
    std::vector<Bytes> budgets;
    for (int i = 0; i <= steps; ++i) {
      const double budget = parts[0] + i * parts[2];
      budgets.push_back(shares > 0 ? of_share(budget) : Bytes(static_cast<std::int64_t>(budget)));
    }
    return budgets;
  }

 private:
  Bytes of_share(double share) {
    if (!fullest_) fullest_ = fullest_stage_without_plan(scenario_, weights_);
    return share_of_activations(share, fullest_->static_bytes, fullest_->base_peak);
  }

  const Scenario& scenario_;
  const PredictorWeights& weights_;
  std::optional<StageMemoryPlan> fullest_;
};

/// Memory of every stage over a simulated step, with the step's time (memory_of_stages()).
nlohmann::ordered_json simulated_memory(const TimedProgram& timed) {
  return forked([&] {
    const StepRun run = run_step(timed, Recording::every_change);
    return memory_of_stages(run.timed, run.timeline);
  });
}

Seconds step_time_of(const nlohmann::ordered_json& memory) {
  return Seconds(memory["step_time_s"].get<double>());
}

/// A scenario planned for one budget after another.
class PlanQuestion {
 public:
  explicit PlanQuestion(const PlanMemoryOptions& options)
      : weights_(shipped_weights()),
        scenario_(load_scenario(options.file, options.overrides, shipped_catalog())) {
    if (scenario_.memory.planner == MemoryPlanner::off)
      scenario_.memory.planner = MemoryPlanner::tessera;
    if (!options.planner.empty()) scenario_.memory.planner = memory_planner_of(options.planner);
    if (options.no_swap) scenario_.memory.swap = false;
    if (options.fast) scenario_.memory.thorough = false;
  }

  const MemoryPlanReport& plan(Bytes budget, bool simulates = true,
                               const PlanProgress& progress = {}) {
    if (budget.value() > 0) scenario_.memory.budget = budget;
    steps_.push_back(plan_step_memory(scenario_, weights_, PlanManner{.progress = progress}));
    const PlannedSteps& steps = steps_.back();
    if (budget > steps.memory.budget)
      spdlog::warn("the budget of {} is more than a GPU has for tensors: {} is planned with",
                   to_short_text(budget), to_short_text(steps.memory.budget));
    MemoryPlanReport report{.scenario = scenario_.name,
                            .planner = std::string(name_of(scenario_.memory.planner)),
                            .budget = steps.memory.budget,
                            .steps = &steps,
                            .base_time = {},
                            .planned_time = {},
                            .simulated_time = {}};
    if (scenario_.step.recompute != Recompute::none)
      report.replaced = name_of(scenario_.step.recompute);
    if (simulates) {
      if (without_.is_null()) without_ = simulated_memory(steps.base);
      report.base_time = step_time_of(without_);
      with_ = nullptr;
      if (steps.memory.feasible()) {
        with_ = simulated_memory(steps.planned);
        report.planned_time = report.base_time + steps.memory.added_time;
        report.simulated_time = step_time_of(with_);
      }
    }
    reports_.push_back(report);
    return reports_.back();
  }
  const std::vector<MemoryPlanReport>& reports() const { return reports_; }
  BudgetReader budgets() const { return {scenario_, weights_}; }

  /// Of the plan that was made and simulated last.
  std::string page() const {
    return memory_plan_page(reports_.back(), without_, with_,
                            provenance_of(scenario_, weights_, steps_.back().base));
  }

 private:
  PredictorWeights weights_;
  Scenario scenario_;
  nlohmann::ordered_json without_, with_;  ///< simulated_memory() of the last plan's steps
  std::deque<PlannedSteps> steps_;
  std::vector<MemoryPlanReport> reports_;
};

/// With a line of how many stages have their plan, and how long the others may take.
const MemoryPlanReport& planned_visibly(PlanQuestion& question, Bytes budget, bool fast,
                                        bool simulates = true) {
  StatusLine status;
  return question.plan(budget, simulates, [&](std::size_t done, std::size_t all) {
    status.show(done, all, fast ? "stages planned" : "stages planned (--fast takes less)");
  });
}

int fullest_stage(const PlannedStep& memory) {
  return std::ranges::max_element(memory.stages, {}, &StageMemoryPlan::base_peak)->stage;
}

ExitCode run_plan_memory(const PlanMemoryOptions& options) {
  PlanQuestion question(options);
  if (!options.budgets.empty()) {
    const std::vector<Bytes> budgets = question.budgets().range(options.budgets);
    StatusLine status;
    for (std::size_t i = 0; i < budgets.size(); ++i) {
      status.show(i, budgets.size(), "budgets");
      question.plan(budgets[i]);
    }
    std::vector<MemoryPlanReport> curve = question.reports();
    keep_fastest_of_tighter(curve);
    if (!options.report_file.empty())
      write_output_file(options.report_file,
                        points_page(memory_curve_points(curve), TESSERA_VERSION));
    print(options.format == "json" ? memory_curve_json(curve)
                                   : for_people(memory_curve_table(curve)));
    return ExitCode::ok;
  }
  const Bytes budget = options.budget.empty() ? Bytes(0) : question.budgets().one(options.budget);
  const MemoryPlanReport& report = planned_visibly(question, budget, options.fast);
  if (!options.picture_file.empty())
    write_output_file(options.picture_file,
                      memory_plan_svg(report, fullest_stage(report.steps->memory)));
  if (!options.report_file.empty()) write_output_file(options.report_file, question.page());
  print(options.format == "json" ? memory_plan_json(report)
                                 : for_people(memory_plan_table(report)));
  return report.steps->memory.feasible() ? ExitCode::ok : ExitCode::does_not_fit;
}

ExitCode run_framework_plan(const PlanMemoryOptions& options) {
  Scenario scenario = load_scenario(options.file, options.overrides, shipped_catalog());
  if (options.no_swap) scenario.memory.swap = false;
  if (options.fast) scenario.memory.thorough = false;
  const PredictorWeights weights = shipped_weights();
  const Bytes budget = options.budget.empty() ? scenario.memory.budget
                                              : BudgetReader(scenario, weights).one(options.budget);
  StatusLine status;
  const auto answer = framework_plan(
      scenario, weights, budget, options.framework,
      [&](std::size_t done, std::size_t all) { status.show(done, all, "ways tried"); });
  print(answer.dump(2) + "\n");
  return answer["fits"].get<bool>() ? ExitCode::ok : ExitCode::does_not_fit;
}

ExitCode run_plan_export(const PlanMemoryOptions& options) {
  if (!options.framework.empty()) return run_framework_plan(options);
  PlanQuestion question(options);
  const Bytes budget = options.budget.empty() ? Bytes(0) : question.budgets().one(options.budget);
  const MemoryPlanReport& report =
      planned_visibly(question, budget, options.fast, !options.report_file.empty());
  if (!options.report_file.empty()) write_output_file(options.report_file, question.page());
  print(memory_decisions_json(report));
  return report.steps->memory.feasible() ? ExitCode::ok : ExitCode::does_not_fit;
}

CLI::App* add_common(CLI::App& plan, const char* name, const char* about,
                     const std::shared_ptr<PlanMemoryOptions>& options) {
  CLI::App* command = plan.add_subcommand(name, about);
  add_scenario_argument(*command, options->file);
  add_set_option(*command, options->overrides);
  command->add_option("--budget", options->budget,
                      "per GPU, for what the framework's allocator holds, as 40GiB, or with 60% of "
                      "the activations (default: the scenario's memory.budget, else the GPU's "
                      "memory)");
  command->add_option("--planner", options->planner, "who plans (default: the scenario's, tessera)")
      ->check(CLI::IsMember(memory_planner_names()));
  command->add_flag("--no-swap", options->no_swap, "recomputation alone");
  command->add_flag("--fast", options->fast, "a shorter search");
  command->add_option("--report", options->report_file,
                      "write the plan as a self-contained HTML page");
  return command;
}

}  // namespace

void add_plan_memory_command(CLI::App& plan, ExitCode& exit_code) {
  auto options = std::make_shared<PlanMemoryOptions>();
  CLI::App* command = add_common(
      plan, "memory", "Make a step fit: what runs again, what is swapped, what it costs", options);
  command->add_option("--budgets", options->budgets,
                      "a curve: first:last:step, as 20GiB:80GiB:5GiB or 30%:90%:10%");
  command->add_option("--picture", options->picture_file,
                      "write memory before and after of the fullest stage as SVG");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options, &exit_code] { exit_code = run_plan_memory(*options); });
}

void add_plan_export_command(CLI::App& plan, ExitCode& exit_code) {
  auto options = std::make_shared<PlanMemoryOptions>();
  CLI::App* command =
      add_common(plan, "export",
                 "Print the decisions of a memory plan, operator by operator, as JSON", options);
  command
      ->add_option("--to", options->framework,
                   "the nearest plan that a framework has options for, and what it loses")
      ->check(CLI::IsMember(plan_framework_names()));
  command->callback([options, &exit_code] { exit_code = run_plan_export(*options); });
}

}  // namespace tessera
