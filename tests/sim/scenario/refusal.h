#pragma once

#include <string>
#include <vector>

#include "sim/scenario/rules/check_scenario.h"

namespace tessera::test {

/// What the rule book says of a step of `model` on a cluster of 8192 GPUs with every arithmetic.
inline std::vector<Problem> problems_of(const ModelSpec& model, const StepOptions& step) {
  Scenario scenario{.name = "step", .model = model, .cluster = {}, .step = step};
  scenario.cluster.id = "large";
  scenario.cluster.node_count = 1024;
  scenario.cluster.node.gpu_count = 8;
  GpuSpec& gpu = scenario.cluster.node.gpu;
  gpu.id = "gpu";
  gpu.architecture = Architecture::hopper;
  gpu.fp32 = gpu.tf32 = gpu.bf16 = gpu.fp16 = gpu.fp8 = gpu.fp4 = 100_TFLOPS;
  return check_scenario(scenario);
}

/// In one text; empty where the step can be simulated.
inline std::string refusal(const ModelSpec& model, const StepOptions& step) {
  std::string text;
  for (const Problem& problem : problems_of(model, step)) text += problem.text() + "\n";
  return text;
}

}  // namespace tessera::test
