#include "app/cli/commands/plan_frameworks.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"
#include "sim/scenario/names.h"
#include "workloads/memory/memory_profile.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

/// What a framework can be told, and what of a scenario does the same.
struct Way {
  Recompute recompute = Recompute::none;
  Texts modules = {};                          ///< of `selective`; none: the framework's choice
  MemoryPlanner planner = MemoryPlanner::off;  ///< or one of Megatron's
  int layers = 0;
};

/// A way that was simulated.
struct Tried {
  Way way;
  bool fits = false;
  Seconds step_time;
  Bytes peak;
};

Texts megatron_options(const Way& way) {
  if (way.recompute == Recompute::selective) {
    std::string modules = way.modules.empty() ? " core_attn" : "";
    for (const std::string& module : way.modules) modules += " " + module;
    return {"--recompute-granularity selective", "--recompute-modules" + modules};
  }
  const bool block = way.planner == MemoryPlanner::megatron_block;
  if (way.planner == MemoryPlanner::off && way.recompute == Recompute::none) return {};
  return {"--recompute-granularity full",
          std::string("--recompute-method ") + (block ? "block" : "uniform"),
          "--recompute-num-layers " + std::to_string(std::max(1, way.layers))};
}

Texts torchtitan_options(const Way& way) {
  const bool full = way.recompute == Recompute::full;
  const bool selective = way.recompute == Recompute::selective;
  Texts lines{"[activation_checkpoint]", std::string("mode = \"") +
                                             (full        ? "full"
                                              : selective ? "selective"
                                                          : "none") +
                                             "\""};
  if (selective) lines.emplace_back("selective_ac_option = \"op\"");
  return lines;
}

Texts deepspeed_options(const Way& way) {
  if (way.recompute == Recompute::none) return {"{}"};
  return {"{\"activation_checkpointing\": {\"partition_activations\": false}}",
          "model code: deepspeed.checkpointing.checkpoint around every layer"};
}

Texts fsdp_options(const Way& way) {
  return {"fsdp_config:", std::string("  fsdp_activation_checkpointing: ") +
                              (way.recompute == Recompute::full ? "true" : "false")};
}

struct Framework {
  const char* name;
  Texts (*options)(const Way&);
  bool layers;                             ///< numbers of layers
  bool selective;                          ///< parts of layers
  std::vector<std::string_view> profiles;  ///< of jobs that it runs
};

const std::array kFrameworks{
    Framework{"megatron",
              megatron_options,
              true,
              true,
              {"megatron", "megatron-local", "megatron-2022", "megatron-deepspeed"}},
    Framework{"torchtitan", torchtitan_options, false, true, {"torchtitan"}},
    Framework{"deepspeed",
              deepspeed_options,
              false,
              false,
              {"megatron-deepspeed", "fsdp", "hf-eager", "hf-compile", "torch-compile"}},
    Framework{"fsdp",
              fsdp_options,
              false,
              false,
              {"fsdp", "hf-eager", "hf-compile", "torch-compile", "llm-foundry"}}};

const char* word_of(Recompute recompute) {
  if (recompute == Recompute::none) return "none";
  return recompute == Recompute::selective ? "selective" : "full";
}

/// What turns `scenario` into the step of `way`.
Json settings_of(const Way& way, const Scenario& scenario) {
  Json settings{{"training.recompute", word_of(way.recompute)}};
  if (!way.modules.empty() || !scenario.step.recompute_modules.empty())
    settings["training.recompute_modules"] = way.modules;
  if (scenario.step.recompute_layers > 0) settings["training.recompute_layers"] = 0;
  if (way.planner == MemoryPlanner::off) {
    if (scenario.memory.planner != MemoryPlanner::off) settings["memory.planner"] = "off";
    return settings;
  }
  settings["memory.planner"] = name_of(way.planner);
  settings["memory.layers"] = way.layers;
  return settings;
}

class Trials {
 public:
  Trials(const Scenario& scenario, const PredictorWeights& weights, Bytes budget)
      : scenario_(scenario), weights_(weights), budget_(budget) {
    scenario_.memory = {};
    scenario_.memory.host_memory = scenario.memory.host_memory;
    scenario_.memory.swap = scenario.memory.swap;
    scenario_.memory.thorough = scenario.memory.thorough;
  }

  Bytes budget_of(const TimedProgram& timed) const {
    return budget_ > Bytes(0) ? budget_ : room_for_tensors(timed);
  }

  Tried of(const Way& way) const {
    Scenario tried = told(way);
    if (way.planner != MemoryPlanner::off) tried.memory.budget = kAnyBudget;
    return simulated(way, plan_step(tried, weights_));
  }

  /// The plan that may choose anything; nothing where there is none.
  std::optional<Tried> free_plan() const {
    Scenario tried = told({.planner = MemoryPlanner::tessera});
    tried.memory.budget = budget_;
    const PlannedSteps steps = plan_step_memory(tried, weights_);
    if (!steps.memory.feasible()) return std::nullopt;
    return simulated({.planner = MemoryPlanner::tessera}, steps.planned);
  }

  /// The number of layers that `planner` needs on the stage that needs most.
  int layers_of(MemoryPlanner planner) const {
    Scenario tried = told({.planner = planner});
    tried.memory.budget = budget_;
    int most = 0;
    for (const StageMemoryPlan& stage : plan_step_memory(tried, weights_).memory.stages)
      if (stage.needed) most = std::max(most, std::atoi(stage.note.c_str()));
    return most;
  }

 private:
  /// Megatron's planners take their number of layers whatever the budget; that is judged behind.
  static constexpr Bytes kAnyBudget = Bytes(100'000'000'000'000);

  Scenario told(const Way& way) const {
    Scenario tried = scenario_;
    tried.step.recompute = way.recompute;
    tried.step.recompute_modules = way.modules;
    tried.step.recompute_layers = 0;
    tried.memory.planner = way.planner;
    tried.memory.layers = way.layers;
    return tried;
  }

  Tried simulated(const Way& way, TimedProgram timed) const {
    Tried tried{.way = way, .fits = true, .step_time = {}, .peak = {}};
    const AllocatorSetting& allocator = timed.library_memory.allocator;
    for (const RankProgram& stage : timed.program.stages) {
      const MemoryProfile profile = profile_memory(timed.program, stage.stage, allocator);
      tried.peak = std::max(tried.peak, profile.peak);
      const bool fits = missing_bytes(profile, allocator, budget_of(timed)) <= Bytes(0);
      tried.fits = tried.fits && fits;
    }
    if (way.planner != MemoryPlanner::tessera) timed.memory_limit = {};
    const std::string answer = run_forked(
        [&] { return Json(simulate_without_memory_samples(timed).step_time.value()).dump(); });
    tried.step_time = Seconds(Json::parse(answer).get<double>());
    return tried;
  }

  Scenario scenario_;
  const PredictorWeights& weights_;
  Bytes budget_;
};

/// `modules`: those of the scenario's own choice.
std::vector<Way> ways_of(const Framework& framework, const Trials& trials, const Texts& modules) {
  std::vector<Way> ways{{.recompute = Recompute::none}, {.recompute = Recompute::full}};
  if (framework.selective) ways.push_back({.recompute = Recompute::selective});
  if (!framework.layers) return ways;
  if (!modules.empty()) ways.push_back({.recompute = Recompute::selective, .modules = modules});
  for (const MemoryPlanner planner :
       {MemoryPlanner::megatron_block, MemoryPlanner::megatron_uniform}) {
    const int layers = trials.layers_of(planner);
    const bool is_new = layers > (planner == MemoryPlanner::megatron_block ? 0 : 1);
    if (is_new) ways.push_back({.planner = planner, .layers = layers});
  }
  return ways;
}

Json json_of(const Framework& framework, const Tried& tried, const Scenario& scenario) {
  return {{"options", framework.options(tried.way)},
          {"settings", settings_of(tried.way, scenario)},
          {"step_time_s", tried.step_time.value()},
          {"peak_bytes", tried.peak.value()},
          {"fits", tried.fits}};
}

/// Those that fit come first, then what is faster, or needs less.
bool is_better(const Tried& a, const Tried& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.step_time < b.step_time : a.peak < b.peak;
}

}  // namespace

std::vector<std::string> plan_framework_names() {
  std::vector<std::string> names;
  for (const Framework& framework : kFrameworks) names.emplace_back(framework.name);
  return names;
}

Json framework_plan(const Scenario& scenario, const PredictorWeights& weights, Bytes budget,
                    const std::string& name, const PlanProgress& progress) {
  const Framework& framework = *std::ranges::find(kFrameworks, name, &Framework::name);
  const Trials trials(scenario, weights, budget);
  const std::vector<Way> ways = ways_of(framework, trials, scenario.step.recompute_modules);
  std::vector<Tried> tried;
  Json refused = Json::array();
  for (const Way& way : ways) {
    progress(tried.size() + refused.size(), ways.size() + 1);
    try {
      tried.push_back(trials.of(way));
    } catch (const InputError& error) {  // not for this model
      if (way.recompute == Recompute::none && way.planner == MemoryPlanner::off) throw;
      refused.push_back({{"settings", settings_of(way, scenario)}, {"why", error.what()}});
    }
  }
  progress(ways.size(), ways.size() + 1);
  const Tried& best = *std::ranges::min_element(tried, is_better);
  Json answer{{"framework", framework.name}, {"scenario", scenario.name}};
  const std::string& profile = scenario.step.framework.name;
  if (std::ranges::find(framework.profiles, profile) == framework.profiles.end())
    answer["approximate"] = "the step is of framework profile " + profile +
                            ", which is not known to describe jobs of " + name;
  answer.update(json_of(framework, best, scenario));
  if (const std::optional<Tried> free = trials.free_plan()) {
    answer["free_plan"] = {{"step_time_s", free->step_time.value()},
                           {"peak_bytes", free->peak.value()}};
    answer["lost"] = best.fits ? Json(best.step_time / free->step_time - 1) : Json(nullptr);
  } else {
    answer["free_plan"] = nullptr;
    answer["lost"] = nullptr;
  }
  answer["tried"] = Json::array();
  for (const Tried& one : tried) answer["tried"].push_back(json_of(framework, one, scenario));
  if (!refused.empty()) answer["refused"] = std::move(refused);
  return answer;
}

}  // namespace tessera
