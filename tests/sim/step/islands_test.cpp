#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/config/load.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

struct Figures {
  double gpus_j = 0, mean_gpu = 0, node_peak = 0, peak_flops = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Figures, gpus_j, mean_gpu, node_peak, peak_flops)

Figures figures_of(const std::vector<std::string>& settings) {
  const Catalog catalog(TESSERA_SOURCE_DIR "/configs");
  Scenario scenario = load_scenario("gpt2-large_4xh100_dp4", settings, catalog);
  scenario.predictor_form = PredictorForm::roofline;
  return forked([&] {
    const StepReport report = run_step(scenario, {}).report;
    return Figures{report.energy->gpus_j, report.energy->mean_gpu.value(),
                   report.energy->node_peak.value(), report.peak_per_gpu.value()};
  });
}

TEST(Islands, AllRanksOnAnotherGpuDrawWhatThatOneDraws) {
  const Figures h100 = figures_of({});
  const Figures a100 = figures_of({"perturbation.gpus=[{replicas: 0-3, gpu: A100-SXM4-80GB}]"});
  EXPECT_GT(h100.mean_gpu, 500);  // of 700 W
  EXPECT_LE(a100.mean_gpu, 400);
  EXPECT_LE(a100.node_peak, 4 * 400 + 1e-6);
  EXPECT_LT(a100.peak_flops, h100.peak_flops);
}

TEST(Islands, HalfOfTheRanksDrawHalf) {
  const Figures a100 = figures_of({"perturbation.gpus=[{replicas: 0-3, gpu: A100-SXM4-80GB}]"});
  const Figures half = figures_of({"perturbation.gpus=[{replicas: 2-3, gpu: A100-SXM4-80GB}]"});
  const Figures h100 = figures_of({});
  // H100s wait for the others, at less power than in products, and at more than an A100's.
  EXPECT_GT(half.gpus_j, a100.gpus_j);
  EXPECT_NEAR(half.peak_flops, (h100.peak_flops + a100.peak_flops) / 2, 1);
}

TEST(Islands, ARackHasItsNodes) {
  const Catalog catalog(TESSERA_SOURCE_DIR "/configs");
  Scenario scenario = load_scenario(
      "gpt3-2.7b_64xh100_dp64_bf16",
      std::vector<std::string>{"cluster.nodes_per_rack=4", "cluster.node.host_power=2kW"}, catalog);
  scenario.predictor_form = PredictorForm::roofline;
  const auto [node, rack] = forked([&] {
    const StepEnergy energy = *run_step(scenario, {}).report.energy;
    return std::array{energy.node_mean.value(), energy.rack_mean.value()};
  });
  EXPECT_GT(node, 2000 + 8 * 105);  // the boards idle at 0.15 of 700 W
  EXPECT_LT(node, 2000 + 8 * 700);
  EXPECT_NEAR(rack, 4 * node, 1e-6);
}

}  // namespace
}  // namespace tessera
