#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "predictor/kernel_predictor.h"
#include "sim/scenario/memory_settings.h"
#include "workloads/step_options.h"

namespace tessera {

/// The words of scenario files and reports.
std::string_view name_of(StepMode mode);
std::string_view name_of(PredictorForm form);
std::string_view name_of(Recompute recompute);
std::string_view name_of(PipelineSchedule schedule);
std::string_view name_of(Sharding sharding);
std::string_view name_of(MemoryPlanner planner);

/// The inverse of `name_of`. Throws InputError that lists the accepted names.
PredictorForm predictor_form_of(std::string_view name);
MemoryPlanner memory_planner_of(std::string_view name);
/// All of them, in the order of their values.
std::vector<std::string> recompute_names();
std::vector<std::string> schedule_names();
std::vector<std::string> sharding_names();
/// All but `off`.
std::vector<std::string> memory_planner_names();

/// Megatron's planners take a number of layers.
bool takes_layers(MemoryPlanner planner);
/// The states of the optimizer live in host memory; nothing runs again.
bool offloads_optimizer(MemoryPlanner planner);

}  // namespace tessera
