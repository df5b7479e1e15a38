#include "sim/scenario/names.h"

#include <algorithm>
#include <array>
#include <string>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 15> kMemoryPlanners{"off",
                                                           "tessera",
                                                           "libra",
                                                           "none",
                                                           "chen_sqrt",
                                                           "chen_greedy",
                                                           "rotor",
                                                           "knapsack",
                                                           "dtr",
                                                           "capuchin",
                                                           "belady",
                                                           "megatron_block",
                                                           "megatron_uniform",
                                                           "optimizer_offload",
                                                           "cpu_optimizer"};
static_assert(int(MemoryPlanner::cpu_optimizer) + 1 == int{kMemoryPlanners.size()});

}  // namespace

std::string_view name_of(StepMode mode) {
  switch (mode) {
    case StepMode::training:
      return "training";
    case StepMode::forward_backward:
      return "forward_backward";
    case StepMode::inference:
      return "inference";
  }
  return "";
}

std::string_view name_of(PredictorForm form) {
  switch (form) {
    case PredictorForm::roofline:
      return "roofline";
    case PredictorForm::neusight:
      return "neusight";
    case PredictorForm::tessera:
      return "tessera";
  }
  return "";
}

std::string_view name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  return "";
}

PredictorForm predictor_form_of(std::string_view name) {
  for (const auto form :
       {PredictorForm::roofline, PredictorForm::neusight, PredictorForm::tessera}) {
    if (name_of(form) == name) return form;
  }
  throw InputError({"predictor form", "'" + std::string(name) + "' is unknown",
                    "use roofline, neusight or tessera"});
}

std::string_view name_of(MemoryPlanner planner) {
  return kMemoryPlanners[static_cast<std::size_t>(planner)];
}

MemoryPlanner memory_planner_of(std::string_view name) {
  const auto found = std::ranges::find(kMemoryPlanners, name);
  if (found != kMemoryPlanners.end())
    return static_cast<MemoryPlanner>(found - kMemoryPlanners.begin());
  std::string known;
  for (const std::string& planner : memory_planner_names())
    known += (known.empty() ? "" : ", ") + planner;
  throw InputError(
      {"memory planner", "'" + std::string(name) + "' is unknown", "use one of " + known});
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
