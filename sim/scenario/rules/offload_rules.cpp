// Rules of updates by the CPU.
#include <string>

#include "hw/units/text.h"
#include "sim/scenario/rules/rules.h"
#include "workloads/optimizers/optimizer_step.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

constexpr const char* kField = "training.offload_optimizer";
constexpr const char* kWeights = "training.offload_parameters";

/// Bytes of a parameter that the host keeps. Of a job that trains adapters frozen weights alone:
/// what is kept of adapters is little beside them.
std::int64_t host_bytes_of_parameter(const StepOptions& step) {
  if (step.lora_rank > 0)
    return step.offload_parameters ? element_bytes(step.formats.parameters) : 0;
  constexpr std::int64_t kGradient = 4;
  const std::int64_t states = state_bytes(step, 1)[MemoryCategory::optimizer].value();
  const bool reads_held = step.offload_parameters && step.formats.master_weights;
  const std::int64_t weights = reads_held ? element_bytes(step.formats.parameters)
                               : step.formats.master_weights ? 0
                                                             : kGradient;
  return states + kGradient + weights;
}

/// What the ranks of a node keep in host memory: states, and gradients in fp32.
Bytes held_by_node(const Scenario& scenario) {
  const StepOptions& step = scenario.step;
  const std::int64_t model_ranks =
      static_cast<std::int64_t>(step.layout.tensor) * step.layout.pipeline;
  const std::int64_t copies = shard_ranks(step) * model_ranks;
  const int ranks = std::min(step.layout.world_size(), scenario.cluster.node.gpu_count);
  const std::int64_t shard = parameter_count(scenario.model) / copies;
  return Bytes(host_bytes_of_parameter(step) * shard * ranks);
}

void check_node(const Scenario& scenario, Problems& problems) {
  const NodeSpec& node = scenario.cluster.node;
  if (host_bandwidth_of_gpu(node) <= BytesPerSecond(0))
    problems.push_back(unknown_host_bandwidth(node, kField));
  const Bytes held = held_by_node(scenario);
  if (node.host_memory > Bytes(0) && held > node.host_memory)
    problems.push_back({kField,
                        "takes " + to_short_text(held) + " of host memory, and " + node.id +
                            " has " + to_short_text(node.host_memory),
                        "divide the states over more GPUs, or use false",
                        {"cluster.node.host_memory"}});
}

void check_host_weights(const Scenario& scenario, Problems& problems) {
  const StepOptions& step = scenario.step;
  if (!step.offload_parameters) return;
  const DataParallel& data = step.data_parallel;
  if (!step.offload_optimizer)
    problems.push_back({kWeights,
                        "keeps weights where the CPU updates them",
                        "use training.offload_optimizer: true too, or false",
                        {kField}});
  if (data.sharding != Sharding::parameters && !data.gather_units)
    problems.push_back({kWeights,
                        "is for parameters that are gathered layer by layer",
                        "use data_parallel.sharding: parameters, or false",
                        {"training.data_parallel.sharding"}});
  if (data.gather_fp8)
    problems.push_back({kWeights,
                        "is not simulated with data_parallel.gather_fp8",
                        "use one of them",
                        {"training.data_parallel.gather_fp8"}});
}

}  // namespace

Problem unknown_host_bandwidth(const NodeSpec& node, const char* other) {
  return {"cluster.node.host_memory_bandwidth",
          "is not known of " + node.id + ": the time of an update by the CPU follows from it",
          "give it, per socket (channels x rate x 8 bytes): 85 GB/s for two channels of DDR5-5600, "
          "200 GB/s for eight of DDR4-3200",
          {other}};
}

void check_host_update(const Scenario& scenario, Problems& problems) {
  const StepOptions& step = scenario.step;
  check_host_weights(scenario, problems);
  if (!step.offload_optimizer) return;
  const auto refuse = [&](bool is_given, const char* what, const char* hint, const char* other) {
    if (is_given) problems.push_back({kField, what, hint, {other}});
  };
  refuse(step.mode != StepMode::training, "is for training steps", "use false", "training.mode");
  refuse(step.optimizer != OptimizerKind::adam, "runs Adam on the CPU",
         "use optimizer: adam, or false", "training.optimizer");
  refuse(step.formats.optimizer_states == Precision::int8, "keeps moments in fp32 or 16 bit",
         "use another format of optimizer_states, or false",
         "training.mixed_precision.optimizer_states");
  refuse(step.layout.pipeline > 1, "is not simulated with pipeline stages",
         "use parallelism.pipeline: 1, or false", "parallelism.pipeline");
  refuse(step.layout.has_replicas() && step.data_parallel.sharding == Sharding::none,
         "is for optimizer states that replicas divide (ZeRO)",
         "use data_parallel.sharding: optimizer, gradients or parameters",
         "training.data_parallel.sharding");
  refuse(scenario.memory.planner != MemoryPlanner::off, "is not simulated with memory.planner",
         "use one of them", "memory.planner");
  refuse(scenario.model.family == ModelFamily::vision, "is not simulated with image models",
         "use false", "model.family");
  check_node(scenario, problems);
}

}  // namespace tessera
