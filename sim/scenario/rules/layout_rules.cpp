// Rules between the sizes of a layout, the batch and the cluster.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <set>
#include <string>

#include "sim/scenario/rules/counts.h"
#include "sim/scenario/rules/rules.h"
#include "workloads/parallel/cost_split.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

void check_tensor(const Scenario& scenario, Problems& problems) {
  const ModelSpec& model = scenario.model;
  const Count tensor{"parallelism.tensor", scenario.step.layout.tensor};
  const std::int64_t keys = std::gcd(model.kv_heads, model.window_kv_heads);
  const std::int64_t common =
      std::gcd(std::gcd(model.heads, keys), std::gcd(model.ffn, model.shared_ffn));
  const auto allowed = divisors(common, scenario.cluster.gpu_count());
  const Count wholes[] = {{"model.heads", model.heads},
                          {"model.kv_heads", model.kv_heads},
                          {"model.window_kv_heads", model.window_kv_heads},
                          {"model.ffn", model.ffn}};
  // One problem is enough: `allowed` respects all four.
  const auto broken =
      std::ranges::find_if_not(wholes, [&](const Count& whole) { return divides(tensor, whole); });
  if (broken != std::end(wholes)) check_divides(tensor, *broken, allowed, problems);
}

/// Only the plain split: schedule_rules.cpp has the rules of the others, and of stages that a
/// framework fills by cost.
void check_pipeline(const Scenario& scenario, Problems& problems) {
  const StageSplit& split = scenario.step.split;
  const bool even = split.layers_per_stage.empty() && split.first_stage_layers == 0 &&
                    split.last_stage_layers == 0 && !split.embedding_as_layer &&
                    !split.head_as_layer;
  if (!even || scenario.step.layout.virtual_stages > 1 || uses_cost_split(scenario.step)) return;
  const Count pipeline{"parallelism.pipeline", scenario.step.layout.pipeline};
  const Count layers{"model.layers", scenario.model.layers};
  const auto allowed = divisors(layers.value, scenario.cluster.gpu_count());
  check_divides(pipeline, layers, allowed, problems);
}

/// Megatron's "m|L".
void check_layers_ahead_of_head(const Scenario& scenario, Problems& problems) {
  const StageSplit& split = scenario.step.split;
  if (!split.mtp_ahead) return;
  const auto fail = [&](const char* what, const char* hint, const char* field) {
    problems.push_back({"parallelism.mtp_ahead", what, hint, {field}});
  };
  if (scenario.model.mtp_layers == 0)
    fail("is true, and the model predicts no further tokens", "set model.mtp_layers, or use false",
         "model.mtp_layers");
  if (split.layers_per_stage.size() < 2 || split.layers_per_stage.back() > 0)
    fail("is true, and the last stage or model chunk has more than the head",
         "give parallelism.layers_per_stage with 0 at its end, or use false",
         "parallelism.layers_per_stage");
  if (scenario.model.tied_embeddings)
    fail("is true, and three stages would share one embedding, which is not simulated",
         "use model.tied_embeddings: false, or false", "model.tied_embeddings");
  if (scenario.step.mode != StepMode::training)
    fail("is true, and inference predicts no further tokens", "use false", "training.mode");
}

void check_world_size(const Scenario& scenario, Problems& problems) {
  const ParallelLayout& layout = scenario.step.layout;
  const std::int64_t gpus =
      std::int64_t{scenario.cluster.node.gpu_count} * scenario.cluster.node_count;
  // In floating point: four sizes of 100000 overflow no double.
  const double ranks =
      static_cast<double>(layout.tensor) * layout.pipeline * layout.data * layout.context;
  if (ranks <= static_cast<double>(gpus)) return;
  std::string names = "tensor * pipeline * data";
  std::string sizes = std::to_string(layout.tensor) + " * " + std::to_string(layout.pipeline) +
                      " * " + std::to_string(layout.data);
  if (layout.context > 1) {
    names += " * context";
    sizes += " * " + std::to_string(layout.context);
  }
  const double nodes = std::ceil(ranks / std::max(scenario.cluster.node.gpu_count, 1));
  const bool can_grow = nodes <= 1e6;
  problems.push_back({"parallelism",
                      "parallelism needs " + names + " = " + sizes + " GPUs, cluster " +
                          scenario.cluster.id + " has " + std::to_string(gpus),
                      can_grow ? "lower a size, or take a larger cluster: cluster.node_count = " +
                                     std::to_string(static_cast<std::int64_t>(nodes))
                               : "lower a size",
                      {"parallelism.tensor", "parallelism.pipeline", "parallelism.data",
                       "parallelism.context", "cluster.node.gpu_count", "cluster.node_count"}});
}

/// Every rank has a GPU of its own.
void check_placement(const Scenario& scenario, Problems& problems) {
  const std::vector<int>& placement = scenario.step.placement;
  if (placement.empty()) return;
  const auto fail = [&](const std::string& what, const std::string& hint) {
    problems.push_back({"parallelism.placement",
                        "parallelism.placement " + what,
                        hint,
                        {"parallelism.tensor", "parallelism.pipeline", "parallelism.data"}});
  };
  const std::size_t ranks = static_cast<std::size_t>(scenario.step.layout.world_size());
  if (placement.size() != ranks) {
    return fail("names " + std::to_string(placement.size()) + " GPUs for " + std::to_string(ranks) +
                    " ranks",
                "give one GPU per rank");
  }
  const std::set<int> distinct(placement.begin(), placement.end());
  if (distinct.size() != ranks) return fail("names a GPU twice", "give every rank its own GPU");
  if (*distinct.begin() < 0 || *distinct.rbegin() >= scenario.cluster.gpu_count()) {
    fail("names GPU " +
             std::to_string(*distinct.begin() < 0 ? *distinct.begin() : *distinct.rbegin()) +
             " of a cluster of " + std::to_string(scenario.cluster.gpu_count()),
         "use 0 to " + std::to_string(scenario.cluster.gpu_count() - 1));
  }
}

/// What replicas with other numbers of micro-batches do together they do once a step.
void check_uneven_batches(const StepOptions& step, Problems& problems) {
  const std::vector<int>& counts = step.split.micro_batches_per_replica;
  if (std::ranges::min(counts) == std::ranges::max(counts)) return;
  const auto refuse = [&](const std::string& why, const std::string& field) {
    problems.push_back({"parallelism.micro_batches_per_replica",
                        "parallelism.micro_batches_per_replica differs among replicas, which meet "
                        "in every micro-batch: " +
                            why,
                        "give equal numbers, or change " + field,
                        {field}});
  };
  if (step.layout.expert > 1) refuse("experts are spread over them", "parallelism.expert");
  const bool scatters = scatters_gradients(step) && step.data_parallel.reduce_each_micro_batch;
  if (gathers_units(step) || scatters)
    refuse("gradients or parameters are divided among them", "training.data_parallel.sharding");
  if (step.schedule == PipelineSchedule::dualpipe)
    refuse("dualpipe orders them two by two", "training.schedule");
}

/// Micro-batches: global_batch = micro_batch * data * micro-batches, all whole.
void check_batch(const Scenario& scenario, Problems& problems) {
  const StepOptions& step = scenario.step;
  if (!step.split.micro_batches_per_replica.empty())  // sim/config/micro_batches.h has the rest
    return check_uneven_batches(step, problems);
  const Count data{"parallelism.data", step.layout.data};
  const Count global{"training.global_batch", step.global_batch};
  if (!divides(data, global)) {
    return check_divides(data, global, divisors(global.value, scenario.cluster.gpu_count()),
                         problems);
  }
  const std::int64_t per_replica = step.global_batch / std::max(step.layout.data, 1);
  if (step.micro_batch > 0 && per_replica % step.micro_batch == 0) return;
  problems.push_back({"training.micro_batch",
                      "training.micro_batch = " + std::to_string(step.micro_batch) +
                          " does not divide global_batch / data = " + std::to_string(per_replica),
                      "use " + listed_values(divisors(per_replica, per_replica)),
                      {"training.global_batch", "training.micro_batches", "parallelism.data"}});
}

void check_sequence_length(const Scenario& scenario, Problems& problems) {
  const std::int64_t length = scenario.step.sequence_length;
  if (scenario.model.family == ModelFamily::vision && length > 0)
    problems.push_back({"training.sequence_length",
                        "training.sequence_length = " + std::to_string(length) +
                            " with the image model " + scenario.model.name,
                        "remove it; model.image_size gives the images",
                        {"model.family"}});
  const std::int64_t positions = scenario.model.max_positions;
  if (positions == 0 || length <= positions) return;
  problems.push_back({"training.sequence_length",
                      "training.sequence_length = " + std::to_string(length) +
                          " exceeds max_positions = " + std::to_string(positions) + " of model " +
                          scenario.model.name,
                      "use " + std::to_string(positions) + " or less",
                      {"model.max_positions"}});
}

}  // namespace

void check_layout(const Scenario& scenario, Problems& problems) {
  check_tensor(scenario, problems);
  check_pipeline(scenario, problems);
  check_layers_ahead_of_head(scenario, problems);
  check_world_size(scenario, problems);
  if (problems.empty()) check_placement(scenario, problems);
  check_batch(scenario, problems);
  check_sequence_length(scenario, problems);
}

}  // namespace tessera
