// Rules between what a step computes in and what a GPU has arithmetic for.
#include <string>

#include "predictor/gpu/gpu_support.h"
#include "sim/scenario/rules/rules.h"

namespace tessera {
namespace {

void check_precision(const Scenario& scenario, Problems& problems) {
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
                      "training.precision = " + std::string(name_of(precision)) + ": " + gpu.id +
                          " has no such arithmetic",
                      "it has " + supported,
                      {field}});
}

void check_mxfp8(const Scenario& scenario, Problems& problems) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  const bool asked = scenario.step.precision == Precision::fp8 &&
                     scenario.step.framework.fp8_scaling == Fp8Scaling::mxfp8;
  const bool scales_blocks = gpu.architecture == Architecture::blackwell ||
                             gpu.architecture == Architecture::blackwell_ultra;
  if (!asked || scales_blocks) return;
  problems.push_back({"training.framework.fp8_scaling",
                      "training.framework.fp8_scaling = mxfp8: tensor cores of " + gpu.id +
                          " take no scale per block",
                      "use delayed or current; mxfp8 needs Blackwell",
                      {"cluster.node.gpu.architecture"}});
}

/// Transformer Engine's alone: cuBLAS multiplies such tiles on Hopper, and on Blackwell the engine
/// makes blocks of 32 of them. Source: Transformer Engine pytorch/quantization.py,
/// check_fp8_block_scaling_support (recalled).
void check_blockwise(const Scenario& scenario, Problems& problems) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  const FrameworkProfile& framework = scenario.step.framework;
  const bool asked =
      scenario.step.precision == Precision::fp8 && framework.fp8_scaling == Fp8Scaling::blockwise;
  if (!asked) return;
  const std::string field = "training.framework.fp8_scaling";
  if (gpu.architecture != Architecture::hopper)
    problems.push_back({field,
                        field + " = blockwise: " + gpu.id +
                            " multiplies no tiles of 128 with a "
                            "scale each",
                        "use delayed or current; on Blackwell mxfp8, which Transformer Engine runs "
                        "in place of it",
                        {"cluster.node.gpu.architecture"}});
  if (!framework.transformer_engine)
    problems.push_back(
        {field,
         field + " = blockwise is simulated as Transformer Engine runs it, not " + framework.name,
         "use framework: megatron, or fp8_scaling: current",
         {"training.framework"}});
}

void check_nvfp4(const Scenario& scenario, Problems& problems) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  const bool scales_blocks = gpu.architecture == Architecture::blackwell ||
                             gpu.architecture == Architecture::blackwell_ultra;
  if (scenario.step.precision != Precision::fp4 || scales_blocks) return;
  problems.push_back(
      {"training.precision",
       "training.precision = nvfp4: tensor cores of " + gpu.id + " take no scale per block",
       "use fp8 or bf16; nvfp4 needs Blackwell",
       {"cluster.node.gpu.architecture"}});
}

void check_attention(const Scenario& scenario, Problems& problems) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  const bool flash3 = scenario.step.framework.attention == AttentionKernels::flash3;
  if (!flash3 || supports(gpu, AttentionImplementation::flash3)) return;
  problems.push_back({"training.framework.attention",
                      "training.framework.attention = flash3: " + gpu.id + " does not run it",
                      "use flash2 or cudnn; FlashAttention-3 needs Hopper",
                      {"cluster.node.gpu.architecture"}});
}

/// Weights are held in fp32 or in the format that activations have.
void check_formats(const Scenario& scenario, Problems& problems) {
  const StepOptions& step = scenario.step;
  const Precision activations = activation_precision(step.precision);
  const auto check = [&](const char* field, Precision format) {
    if (format == Precision::fp32 || format == activations) return;
    const std::string path = std::string("training.mixed_precision.") + field;
    problems.push_back(
        {path,
         path + " = " + std::string(name_of(format)) + " in a step with activations in " +
             std::string(name_of(activations)),
         "use fp32" + (activations == Precision::fp32 ? std::string()
                                                      : " or " + std::string(name_of(activations))),
         {"training.precision"}});
  };
  check("parameters", step.formats.parameters);
  check("gradients", step.formats.gradients);
  check("reduce", step.formats.reduce);
  const bool eight_bit = step.formats.optimizer_states == Precision::int8;
  if (eight_bit && step.optimizer == OptimizerKind::adam) return;
  check("optimizer_states", step.formats.optimizer_states);
}

}  // namespace

void check_precisions(const Scenario& scenario, Problems& problems) {
  check_precision(scenario, problems);
  check_formats(scenario, problems);
  check_mxfp8(scenario, problems);
  check_blockwise(scenario, problems);
  check_nvfp4(scenario, problems);
  check_attention(scenario, problems);
}

}  // namespace tessera
