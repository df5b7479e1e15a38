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
    problems.push_back(unknown_host_bandwidth(scenario.cluster.node, "memory.planner"));
  if (scenario.step.optimizer != OptimizerKind::adam)
    problems.push_back({"training.optimizer",
                        "cpu_optimizer runs Adam",
                        "use optimizer: adam, or planner: optimizer_offload",
                        {"memory.planner"}});
}

/// What a plan may do beyond running again and copying.
void check_means(const Scenario& scenario, Problems& problems) {
  const MemorySettings& memory = scenario.memory;
  const auto refuse = [&](bool is_given, const char* field) {
    if (is_given && memory.planner == MemoryPlanner::off)
      problems.push_back({field,
                          "says what a plan may do, and there is none",
                          "give memory.planner, for instance tessera, or leave it out",
                          {"memory.planner"}});
    if (is_given && (takes_layers(memory.planner) || offloads_optimizer(memory.planner)))
      problems.push_back({field,
                          "is not for memory.planner = " + std::string(name_of(memory.planner)) +
                              ", whose plans are of one kind",
                          "use memory.planner: tessera, or leave it out",
                          {"memory.planner"}});
  };
  refuse(memory.packing != ActivationPacking::as_it_is, "memory.packing");
  refuse(memory.optimizer_states != OptimizerStates::on_gpu, "memory.optimizer_states");
  refuse(memory.split_batch > 1, "memory.split_batch");
  refuse(memory.planned_sequence_length > 0, "memory.planned_sequence_length");
  refuse(memory.planned_expert_imbalance > 0, "memory.planned_expert_imbalance");
}

void check_states(const Scenario& scenario, Problems& problems) {
  const MemorySettings& memory = scenario.memory;
  if (memory.optimizer_states == OptimizerStates::on_gpu) return;
  if (!memory.swap)
    problems.push_back({"memory.swap",
                        "false leaves optimizer states on the GPU",
                        "use swap: true, or leave out memory.optimizer_states",
                        {"memory.optimizer_states"}});
  const NodeSpec& node = scenario.cluster.node;
  const bool has_drives = node.nvme_count > 0 && node.nvme_read_bandwidth > BytesPerSecond(0) &&
                          node.nvme_write_bandwidth > BytesPerSecond(0);
  if (memory.optimizer_states == OptimizerStates::on_nvme && !has_drives)
    problems.push_back({"memory.optimizer_states",
                        "on_nvme, and " + node.id + " has no drives",
                        "use on_host, or give nvme_count, nvme_read_bandwidth and "
                        "nvme_write_bandwidth of the node",
                        {"cluster.node.nvme_count"}});
}

/// A plan that was made for another step is a list of what runs and what is copied.
void check_foreseen(const Scenario& scenario, Problems& problems) {
  const MemorySettings& memory = scenario.memory;
  const bool foreseen = memory.planned_sequence_length > 0 || memory.planned_expert_imbalance > 0;
  if (!foreseen) return;
  const char* field = memory.planned_sequence_length > 0 ? "memory.planned_sequence_length"
                                                         : "memory.planned_expert_imbalance";
  if (memory.optimizer_states != OptimizerStates::on_gpu || memory.split_batch > 1)
    problems.push_back({field,
                        "goes with plans of recomputation, copies and packing alone",
                        "leave out memory.optimizer_states and memory.split_batch",
                        {"memory.optimizer_states", "memory.split_batch"}});
  if (memory.planned_expert_imbalance > 0 && memory.planned_expert_imbalance < 1)
    problems.push_back({"memory.planned_expert_imbalance",
                        "is tokens of the busiest expert over the mean of all, at least 1",
                        "use 1 for balanced experts",
                        {}});
}

}  // namespace

void check_memory(const Scenario& scenario, Problems& problems) {
  const MemorySettings& memory = scenario.memory;
  if (memory.layers > 0 && !takes_layers(memory.planner))
    problems.push_back({"memory.layers",
                        "is a number that only Megatron's planners take",
                        "use memory.planner megatron_block or megatron_uniform, or leave it out",
                        {"memory.planner"}});
  const bool may_run_short = memory.planner != MemoryPlanner::off || memory.limit > Bytes(0);
  if (memory.pressure != PressurePolicy::rule && !may_run_short)
    problems.push_back({"memory.pressure",
                        "is of steps that may run short of memory, and nothing limits it",
                        "give memory.limit, for instance 40GiB, or leave it out",
                        {"memory.limit"}});
  check_means(scenario, problems);
  if (memory.planner == MemoryPlanner::off) return;
  check_states(scenario, problems);
  check_foreseen(scenario, problems);
  check_passes(scenario, problems);
  check_offload(scenario, problems);
}

}  // namespace tessera
