#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hw/units/input_error.h"
#include "predictor/weights.h"
#include "sim/cli/commands.h"
#include "sim/cli/home.h"
#include "sim/cli/output.h"
#include "sim/config/load.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"

namespace tessera {
namespace {

struct PlanBatchOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::vector<std::string> planners;
  bool no_swap = false;
  std::string format;
};

struct BatchAnswer {
  std::string planner;
  std::int64_t micro_batch = 0;       ///< 0: not even one sequence fits
  std::optional<Seconds> per_sample;  ///< step time over sequences
};

/// The largest micro-batch with which a scenario fits, its number of micro-batches kept.
class BatchSearch {
 public:
  BatchSearch(Scenario scenario, std::string planner, const PredictorWeights& weights)
      : scenario_(std::move(scenario)),
        weights_(weights),
        micro_batches_(scenario_.step.micro_batches()) {
    scenario_.memory.planner = std::move(planner);
    scenario_.memory.thorough = false;
  }

  BatchAnswer run() {
    BatchAnswer answer{.planner = scenario_.memory.planner};
    std::int64_t fits = 0, fails = 1;
    while (fails <= kMost && try_batch(fails)) {
      fits = fails;
      fails *= 2;
    }
    while (fails - fits > 1) {
      const std::int64_t middle = (fits + fails) / 2;
      (try_batch(middle) ? fits : fails) = middle;
    }
    answer.micro_batch = fits;
    if (fits == 0) return answer;
    try_batch(fits);
    const std::string time = run_forked([&] {
      char text[64];
      std::snprintf(text, sizeof(text), "%.17g", simulate(steps_->planned).step_time.value());
      return std::string(text);
    });
    answer.per_sample = Seconds(std::stod(time)) / static_cast<double>(scenario_.step.global_batch);
    return answer;
  }

 private:
  static constexpr std::int64_t kMost = 1 << 16;

  bool try_batch(std::int64_t micro_batch) {
    scenario_.step.micro_batch = micro_batch;
    scenario_.step.global_batch = micro_batch * scenario_.step.layout.data * micro_batches_;
    steps_ = plan_step_memory(scenario_, weights_);
    return steps_->memory.feasible();
  }

  Scenario scenario_;
  const PredictorWeights& weights_;
  std::int64_t micro_batches_;
  std::optional<PlannedSteps> steps_;
};

std::string batch_table(const std::vector<BatchAnswer>& answers) {
  std::string text;
  char line[160];
  std::snprintf(line, sizeof(line), "%-18s %12s %14s %10s %12s\n", "planner", "micro-batch",
                "ms per sample", "batch x", "time x");
  text += line;
  const BatchAnswer& plain = answers.front();
  for (const BatchAnswer& answer : answers) {
    const bool compared = answer.per_sample && plain.per_sample;
    std::snprintf(line, sizeof(line), "%-18s %12lld %14s %10s %12s\n", answer.planner.c_str(),
                  static_cast<long long>(answer.micro_batch), "", "", "");
    if (answer.per_sample) {
      const double batch = plain.micro_batch > 0 ? static_cast<double>(answer.micro_batch) /
                                                       static_cast<double>(plain.micro_batch)
                                                 : 0;
      std::snprintf(line, sizeof(line), "%-18s %12lld %14.3f %10.2f %12.3f\n",
                    answer.planner.c_str(), static_cast<long long>(answer.micro_batch),
                    answer.per_sample->value() * 1e3, batch,
                    compared ? *answer.per_sample / *plain.per_sample : 0.0);
    }
    text += line;
  }
  return text;
}

std::string batch_json(const std::vector<BatchAnswer>& answers) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BatchAnswer& answer : answers)
    list.push_back({{"planner", answer.planner},
                    {"micro_batch", answer.micro_batch},
                    {"seconds_per_sample", answer.per_sample
                                               ? nlohmann::ordered_json(answer.per_sample->value())
                                               : nlohmann::ordered_json(nullptr)}});
  return nlohmann::ordered_json{{"schema", "tessera.batch_plan/1"}, {"planners", std::move(list)}}
             .dump(2) +
         "\n";
}

void run_plan_batch(const PlanBatchOptions& options) {
  Scenario scenario = load_scenario(options.file, options.overrides, shipped_catalog());
  if (options.no_swap) scenario.memory.swap = false;
  const PredictorWeights weights = shipped_weights();
  std::vector<std::string> planners{"none"};
  for (const std::string& name : options.planners)
    if (name != "none") planners.push_back(name);
  if (options.planners.empty())
    for (const char* name : {"tessera", "libra", "chen_sqrt", "megatron_block", "megatron_uniform"})
      planners.emplace_back(name);
  std::vector<BatchAnswer> answers;
  for (const std::string& planner : planners)
    answers.push_back(BatchSearch(scenario, planner, weights).run());
  print(options.format == "json" ? batch_json(answers) : batch_table(answers));
}

}  // namespace

void add_plan_batch_command(CLI::App& plan) {
  auto options = std::make_shared<PlanBatchOptions>();
  CLI::App* command = plan.add_subcommand(
      "batch", "Find the largest micro-batch that fits, without and with a memory plan");
  command->add_option("FILE", options->file, "scenario (YAML)")->required();
  add_set_option(*command, options->overrides);
  command->add_option("--planner", options->planners, "besides none; repeatable")
      ->check(CLI::IsMember(step_planner_names()));
  command->add_flag("--no-swap", options->no_swap, "recomputation alone");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options] { run_plan_batch(*options); });
}

}  // namespace tessera
