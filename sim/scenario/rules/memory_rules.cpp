// Rules of plans for a memory budget.
#include <string>

#include "sim/scenario/names.h"
#include "sim/scenario/rules/rules.h"

namespace tessera {
namespace {

/// Planners take passes one after the other.
void check_passes(const Scenario& scenario, Problems& problems) {
  const auto refuse = [&](const std::string& field) {
    problems.push_back({"memory.planner",
                        "memory.planner is not simulated with " + field,
                        "use memory.planner: off, or leave that out",
                        {field}});
  };
  if (scenario.step.framework.overlap_experts) refuse("training.framework.overlap_experts");
  if (scenario.step.offload_layers > 0) refuse("training.offload_layers");
  if (!scenario.step.split.micro_batches_per_replica.empty())
    refuse("parallelism.micro_batches_per_replica");
  if (scenario.step.mode == StepMode::inference)
    problems.push_back(
        {"memory.planner", "is for training steps", "use mode: training", {"training.mode"}});
}

/// Where the states of the optimizer live in host memory.
void check_offload(const Scenario& scenario, Problems& problems) {
  const MemoryPlanner planner = scenario.memory.planner;
  if (!offloads_optimizer(planner)) return;
  if (!scenario.memory.swap)
    problems.push_back({"memory.swap",
                        "false leaves " + std::string(name_of(planner)) + " nothing to do",
                        "use swap: true, or another planner",
                        {"memory.planner"}});
  if (planner != MemoryPlanner::cpu_optimizer) return;
  if (host_bandwidth_of_gpu(scenario.cluster.node) <= BytesPerSecond(0))
    problems.push_back({"cluster.node.host_memory_bandwidth",
                        "is not known of " + scenario.cluster.node.id +
                            ": the time of an update by the CPU follows from it",
                        "give it, per socket, for instance 200 GB/s",
                        {"memory.planner"}});
  if (scenario.step.optimizer != OptimizerKind::adam)
    problems.push_back({"training.optimizer",
                        "cpu_optimizer runs Adam",
                        "use optimizer: adam, or planner: optimizer_offload",
                        {"memory.planner"}});
}

}  // namespace

void check_memory(const Scenario& scenario, Problems& problems) {
  const MemorySettings& memory = scenario.memory;
  if (memory.layers > 0 && !takes_layers(memory.planner))
    problems.push_back({"memory.layers",
                        "is a number that only Megatron's planners take",
                        "use memory.planner megatron_block or megatron_uniform, or leave it out",
                        {"memory.planner"}});
  if (memory.planner == MemoryPlanner::off) return;
  check_passes(scenario, problems);
  check_offload(scenario, problems);
}

}  // namespace tessera
