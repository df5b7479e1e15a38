#include "sim/plan/single_gpu_step.h"

#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "hw/box.h"
#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"

namespace tessera {
namespace {

struct Case {
  const char* gpu;
  const char* model;
  StepMode mode;
  KernelMode kernels;
  std::int64_t sequence_length, batch;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model << " on " << c.gpu;
}

Scenario scenario_of(const Case& c) {
  const Catalog catalog(TESSERA_SOURCE_DIR "/configs");
  Scenario scenario;
  scenario.model = load_model(c.model, catalog);
  scenario.cluster = single_gpu_cluster(load_gpu(c.gpu, catalog));
  scenario.step.mode = c.mode;
  scenario.step.framework = load_framework("hf-eager", catalog);
  scenario.step.kernels = c.kernels;
  scenario.step.sequence_length = c.sequence_length;
  scenario.step.micro_batch = scenario.step.global_batch = c.batch;
  return scenario;
}

PredictorWeights weights() {
  return load_weights(TESSERA_SOURCE_DIR "/predictor/weights/tessera.pb");
}

class ClosedForm : public testing::TestWithParam<Case> {};

TEST_P(ClosedForm, EqualsTheSimulation) {
  const Scenario scenario = scenario_of(GetParam());
  const std::string simulated = run_forked([&] {
    return std::to_string(simulate(plan_step(scenario, weights())).step_time.value() * 1e9);
  });
  const auto predictor =
      make_predictor(PredictorForm::tessera, scenario.cluster.node.gpu, weights());
  const double closed = SingleGpuStep(scenario).step_time(*predictor).value() * 1e9;
  EXPECT_NEAR(closed, std::stod(simulated), 1);  // 1 ns, the rounding of dates
}

// Bound by the GPU, bound by the host, compiled kernels, synchronisations of a routing loop.
INSTANTIATE_TEST_SUITE_P(
    Steps, ClosedForm,
    testing::Values(
        Case{"V100-PCIe-32GB", "gpt2-large", StepMode::forward_backward, KernelMode::eager, 1024,
             1},
        Case{"H100-SXM5-80GB", "bert-large", StepMode::inference, KernelMode::eager, 32, 1},
        Case{"A100-PCIe-40GB", "gpt2-large", StepMode::inference, KernelMode::fused, 1024, 4},
        Case{"A100-PCIe-40GB", "switch-xl4", StepMode::inference, KernelMode::eager, 512, 1}));

TEST(SingleGpuStep, CountsTheLaunchesOfEachDistinctKernel) {
  const Scenario scenario = scenario_of(
      {"V100-PCIe-32GB", "gpt2-large", StepMode::inference, KernelMode::eager, 1024, 1});
  std::int64_t launches = 0;
  const SingleGpuStep step(scenario);
  for (const auto& counted : step.kernels()) launches += counted.launches;
  const Program program = build_program(scenario.model, scenario.step);
  std::int64_t expected = 0;
  for (const ProgramOp& op : program.stages[0].ops)
    expected += static_cast<std::int64_t>(program.segment(op.segment).kernels.size());
  EXPECT_EQ(launches, expected);
  EXPECT_LT(step.kernels().size(), 100u);
}

TEST(SingleGpuStep, RefusesSeveralGpus) {
  Scenario scenario = scenario_of(
      {"V100-PCIe-32GB", "gpt2-large", StepMode::inference, KernelMode::eager, 1024, 4});
  scenario.step.layout.data = 4;
  EXPECT_THROW(SingleGpuStep{scenario}, InputError);
}

}  // namespace
}  // namespace tessera
