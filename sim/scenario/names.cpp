#include "sim/scenario/names.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr auto kModes = std::to_array<std::string_view>({
#include "configs/schema/words/step_mode_names.inc"
});
constexpr auto kPredictorForms = std::to_array<std::string_view>({
#include "configs/schema/words/predictor_form_names.inc"
});
constexpr auto kRecomputes = std::to_array<std::string_view>({
#include "configs/schema/words/recompute_names.inc"
});
constexpr auto kSchedules = std::to_array<std::string_view>({
#include "configs/schema/words/pipeline_schedule_names.inc"
});
constexpr auto kSharding = std::to_array<std::string_view>({
#include "configs/schema/words/sharding_names.inc"
});
constexpr auto kMemoryPlanners = std::to_array<std::string_view>({
#include "configs/schema/words/memory_planner_names.inc"
});

/// Words stand in the order of their numbers.
std::string_view word_of(std::span<const std::string_view> words, auto value) {
  return words[static_cast<std::size_t>(value)];
}

/// The inverse. Throws InputError that lists the words.
template <class Value>
Value value_of(std::span<const std::string_view> words, std::string_view word, const char* what) {
  const auto found = std::ranges::find(words, word);
  if (found != words.end()) return static_cast<Value>(found - words.begin());
  std::string known;
  for (const std::string_view one : words) known += (known.empty() ? "" : ", ") + std::string(one);
  throw InputError({what, "'" + std::string(word) + "' is unknown", "use one of " + known});
}

}  // namespace

std::string_view name_of(StepMode mode) {
  return word_of(kModes, mode);
}
std::string_view name_of(PredictorForm form) {
  return word_of(kPredictorForms, form);
}
std::string_view name_of(Recompute recompute) {
  return word_of(kRecomputes, recompute);
}
std::string_view name_of(PipelineSchedule schedule) {
  return word_of(kSchedules, schedule);
}
std::string_view name_of(Sharding sharding) {
  return word_of(kSharding, sharding);
}
std::string_view name_of(MemoryPlanner planner) {
  return word_of(kMemoryPlanners, planner);
}

PredictorForm predictor_form_of(std::string_view name) {
  return value_of<PredictorForm>(kPredictorForms, name, "predictor form");
}
MemoryPlanner memory_planner_of(std::string_view name) {
  return value_of<MemoryPlanner>(kMemoryPlanners, name, "memory planner");
}

std::vector<std::string> recompute_names() {
  return {kRecomputes.begin(), kRecomputes.end()};
}
std::vector<std::string> schedule_names() {
  return {kSchedules.begin(), kSchedules.end()};
}
std::vector<std::string> sharding_names() {
  return {kSharding.begin(), kSharding.end()};
}
std::vector<std::string> memory_planner_names() {
  return {kMemoryPlanners.begin() + 1, kMemoryPlanners.end()};
}

bool takes_layers(MemoryPlanner planner) {
  return planner == MemoryPlanner::megatron_block || planner == MemoryPlanner::megatron_uniform;
}

bool offloads_optimizer(MemoryPlanner planner) {
  return planner == MemoryPlanner::optimizer_offload || planner == MemoryPlanner::cpu_optimizer;
}

}  // namespace tessera
