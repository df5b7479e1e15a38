#include "sim/scenario/check_scenario.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <set>
#include <string_view>

#include "hw/units/input_error.h"
#include "predictor/gpu/gpu_support.h"
#include "sim/scenario/counts.h"

namespace tessera {
namespace {

void check_tensor(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const ModelSpec& model = scenario.model;
  const Count tensor{"parallelism.tensor", scenario.step.layout.tensor};
  const std::int64_t common =
      std::gcd(std::gcd(model.heads, model.kv_heads), std::gcd(model.ffn, model.shared_ffn));
  const auto allowed = divisors(common, scenario.cluster.gpu_count());
  const Count wholes[] = {
      {"model.heads", model.heads}, {"model.kv_heads", model.kv_heads}, {"model.ffn", model.ffn}};
  // One problem is enough: `allowed` respects all three.
  const auto broken =
      std::ranges::find_if_not(wholes, [&](const Count& whole) { return divides(tensor, whole); });
  if (broken != std::end(wholes)) check_divides(tensor, *broken, allowed, problems);
}

/// Only the plain split: step_check.cpp has the rules of the others.
void check_pipeline(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const StageSplit& split = scenario.step.split;
  const bool even = split.layers_per_stage.empty() && split.first_stage_layers == 0 &&
                    split.last_stage_layers == 0 && !split.embedding_as_layer &&
                    !split.head_as_layer;
  if (!even || scenario.step.layout.virtual_stages > 1) return;
  const Count pipeline{"parallelism.pipeline", scenario.step.layout.pipeline};
  const Count layers{"model.layers", scenario.model.layers};
  const auto allowed = divisors(layers.value, scenario.cluster.gpu_count());
  check_divides(pipeline, layers, allowed, problems);
}

void check_world_size(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
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
  problems.push_back({"parallelism",
                      {"parallelism.tensor", "parallelism.pipeline", "parallelism.data",
                       "parallelism.context", "cluster.node.gpu_count", "cluster.node_count"},
                      "parallelism needs " + names + " = " + sizes + " GPUs, cluster " +
                          scenario.cluster.id + " has " + std::to_string(gpus),
                      "lower a size or take a larger cluster"});
}

/// Every rank has a GPU of its own.
void check_placement(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const std::vector<int>& placement = scenario.step.placement;
  if (placement.empty()) return;
  const auto fail = [&](const std::string& what, const std::string& hint) {
    problems.push_back({"parallelism.placement",
                        {"parallelism.tensor", "parallelism.pipeline", "parallelism.data"},
                        "parallelism.placement " + what,
                        hint});
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

/// Micro-batches: global_batch = micro_batch * data * micro-batches, all whole.
void check_batch(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const StepOptions& step = scenario.step;
  if (!step.split.micro_batches_per_replica.empty()) return;  // sim/config/micro_batches.h
  const Count data{"parallelism.data", step.layout.data};
  const Count global{"training.global_batch", step.global_batch};
  if (!divides(data, global)) {
    return check_divides(data, global, divisors(global.value, scenario.cluster.gpu_count()),
                         problems);
  }
  const std::int64_t per_replica = step.global_batch / std::max(step.layout.data, 1);
  if (step.micro_batch > 0 && per_replica % step.micro_batch == 0) return;
  problems.push_back({"training.micro_batch",
                      {"training.global_batch", "training.micro_batches", "parallelism.data"},
                      "training.micro_batch = " + std::to_string(step.micro_batch) +
                          " does not divide global_batch / data = " + std::to_string(per_replica),
                      "use " + listed_values(divisors(per_replica, per_replica))});
}

void check_sequence_length(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const std::int64_t length = scenario.step.sequence_length;
  if (scenario.model.family == ModelFamily::vision && length > 0)
    problems.push_back({"training.sequence_length",
                        {"model.family"},
                        "training.sequence_length = " + std::to_string(length) +
                            " with the image model " + scenario.model.name,
                        "remove it; model.image_size gives the images"});
  const std::int64_t positions = scenario.model.max_positions;
  if (positions == 0 || length <= positions) return;
  problems.push_back({"training.sequence_length",
                      {"model.max_positions"},
                      "training.sequence_length = " + std::to_string(length) +
                          " exceeds max_positions = " + std::to_string(positions) + " of model " +
                          scenario.model.name,
                      "use " + std::to_string(positions) + " or less"});
}

void check_precision(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  const Precision precision = scenario.step.precision;
  if (supports_products(gpu, precision)) return;
  std::string supported;
  for (const Precision other : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16,
                                Precision::fp8, Precision::fp4}) {
    if (!supports_products(gpu, other)) continue;
    supported += (supported.empty() ? "" : ", ") + std::string(name_of(other));
  }
  const std::string field = "cluster.node.gpu." + std::string(name_of(precision));
  problems.push_back({"training.precision",
                      {field},
                      "training.precision = " + std::string(name_of(precision)) + ": " + gpu.id +
                          " has no such arithmetic",
                      "it has " + supported});
}

void check_mxfp8(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  const bool asked = scenario.step.precision == Precision::fp8 &&
                     scenario.step.framework.fp8_scaling == Fp8Scaling::mxfp8;
  const bool scales_blocks = gpu.architecture == Architecture::blackwell ||
                             gpu.architecture == Architecture::blackwell_ultra;
  if (!asked || scales_blocks) return;
  problems.push_back({"training.framework.fp8_scaling",
                      {"cluster.node.gpu.architecture"},
                      "training.framework.fp8_scaling = mxfp8: tensor cores of " + gpu.id +
                          " take no scale per block",
                      "use delayed or current; mxfp8 needs Blackwell"});
}

void check_nvfp4(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  const bool scales_blocks = gpu.architecture == Architecture::blackwell ||
                             gpu.architecture == Architecture::blackwell_ultra;
  if (scenario.step.precision != Precision::fp4 || scales_blocks) return;
  problems.push_back(
      {"training.precision",
       {"cluster.node.gpu.architecture"},
       "training.precision = nvfp4: tensor cores of " + gpu.id + " take no scale per block",
       "use fp8 or bf16; nvfp4 needs Blackwell"});
}

/// Planners take passes one after the other.
void check_planner(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  if (scenario.memory.planner.empty()) return;
  const auto refuse = [&](const std::string& field) {
    problems.push_back({"memory.planner",
                        {field},
                        "memory.planner is not simulated with " + field,
                        "use memory.planner: off, or leave that out"});
  };
  if (scenario.step.framework.overlap_experts) refuse("training.framework.overlap_experts");
  if (scenario.step.offload_layers > 0) refuse("training.offload_layers");
  if (!scenario.step.split.micro_batches_per_replica.empty())
    refuse("parallelism.micro_batches_per_replica");
}

void check_attention(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  const bool flash3 = scenario.step.framework.attention == AttentionKernels::flash3;
  if (!flash3 || supports(gpu, AttentionImplementation::flash3)) return;
  problems.push_back({"training.framework.attention",
                      {"cluster.node.gpu.architecture"},
                      "training.framework.attention = flash3: " + gpu.id + " does not run it",
                      "use flash2 or cudnn; FlashAttention-3 needs Hopper"});
}

/// Weights are held in fp32 or in the format that activations have.
void check_formats(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const StepOptions& step = scenario.step;
  const Precision activations = activation_precision(step.precision);
  const auto check = [&](const char* field, Precision format) {
    if (format == Precision::fp32 || format == activations) return;
    const std::string path = std::string("training.mixed_precision.") + field;
    problems.push_back({path,
                        {"training.precision"},
                        path + " = " + std::string(name_of(format)) +
                            " in a step with activations in " + std::string(name_of(activations)),
                        "use fp32" + (activations == Precision::fp32
                                          ? std::string()
                                          : " or " + std::string(name_of(activations)))});
  };
  check("parameters", step.formats.parameters);
  check("gradients", step.formats.gradients);
  check("reduce", step.formats.reduce);
  const bool eight_bit = step.formats.optimizer_states == Precision::int8;
  if (eight_bit && step.optimizer == OptimizerKind::adam) return;
  check("optimizer_states", step.formats.optimizer_states);
}

/// An overlay that has no effect would be mistaken for one that has.
void check_overlays(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const std::string& gpu = scenario.cluster.node.gpu.id;
  for (std::size_t i = 0; i < scenario.overlays.size(); ++i) {
    const std::string path = "overlays[" + std::to_string(i) + "]";
    const std::string& of = scenario.overlays[i].gpu;
    if (of != gpu) {
      problems.push_back(
          {path + ".gpu",
           {"cluster.node.gpu.id"},
           path + ".gpu = " + of + ", but the GPU of cluster " + scenario.cluster.id + " is " + gpu,
           "remove the overlay, or calibrate " + gpu});
    } else if (i > 0) {
      problems.push_back({path, {}, path + " is a second overlay of " + gpu, "keep one"});
    }
  }
  if (scenario.overlays.empty() || scenario.predictor_form == PredictorForm::tessera) return;
  problems.push_back({"overlays",
                      {"predictor.form"},
                      "overlays correct the predictor form tessera alone",
                      "use predictor.form = tessera, or remove them"});
}

void check_perturbation(const Scenario& scenario, std::vector<ScenarioProblem>& problems) {
  const Precision precision = scenario.step.precision;
  for (std::size_t i = 0; i < scenario.perturbation.gpus.size(); ++i) {
    const GpuPerturbation& gpus = scenario.perturbation.gpus[i];
    const std::string path = "perturbation.gpus[" + std::to_string(i) + "]";
    try {
      ranks_of(gpus, scenario.step.layout);
    } catch (const InputError& error) {
      const Problem& problem = error.problems().front();
      const std::string field = path + "." + problem.where;
      problems.push_back({field,
                          {"parallelism.tensor", "parallelism.pipeline", "parallelism.data"},
                          field + " " + problem.what,
                          problem.hint});
    }
    if (!gpus.gpu.id.empty() && !supports_products(gpus.gpu, precision)) {
      problems.push_back({path + ".gpu",
                          {"training.precision"},
                          path + ".gpu = " + gpus.gpu.id + " has no arithmetic in " +
                              std::string(name_of(precision)),
                          "use another GPU, or another training.precision"});
    }
  }
}

}  // namespace

std::vector<ScenarioProblem> check_scenario(const Scenario& scenario) {
  std::vector<ScenarioProblem> problems = check_model(scenario.model);
  check_tensor(scenario, problems);
  check_pipeline(scenario, problems);
  check_world_size(scenario, problems);
  if (problems.empty()) check_placement(scenario, problems);
  check_batch(scenario, problems);
  check_sequence_length(scenario, problems);
  check_precision(scenario, problems);
  check_formats(scenario, problems);
  check_mxfp8(scenario, problems);
  check_nvfp4(scenario, problems);
  check_planner(scenario, problems);
  check_attention(scenario, problems);
  check_overlays(scenario, problems);
  check_perturbation(scenario, problems);
  return problems;
}

}  // namespace tessera
