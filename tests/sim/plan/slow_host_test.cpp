#include <gtest/gtest.h>

#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/plan/plan.h"
#include "tests/workloads/models.h"

namespace tessera {
namespace {

/// GPT-2 on four DGX A100, tensor-parallel inside them; an all-gather of 1 GiB takes 0.35 ms for
/// each of the 32 ranks beyond 1.5 ms of the call, so the host is slow.
TimedProgram slow_step() {
  Scenario scenario{.name = "gpt", .model = test::gpt2_large(), .cluster = {}, .step = {}};
  const Catalog catalog(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs");
  scenario.cluster = load_cluster("dgx-a100", catalog);
  scenario.cluster.node_count = 4;
  constexpr double kGathered = 31.0 / 32 * (1LL << 30);
  scenario.cluster.measured_all_gather = BytesPerSecond(kGathered / (32 * 0.35e-3 + 1.5e-3));
  scenario.cluster.measured_all_reduce = BytesPerSecond(2 * kGathered / 30e-3);
  scenario.step =
      test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 1, 1024));
  scenario.step.layout = {.tensor = 4, .pipeline = 1, .data = 8};
  scenario.step.global_batch = 8;
  scenario.predictor_form = PredictorForm::roofline;
  return plan_step(scenario, PredictorWeights());
}

TEST(SlowHost, TakesATimeForEachRankOfAGroup) {
  const TimedProgram timed = slow_step();
  const auto ms = [&](GroupKind kind) {
    return 1e3 * timed.group_host_time[static_cast<std::size_t>(kind)].value();
  };
  // A rank on the node of the first takes 0.7 of it.
  EXPECT_NEAR(ms(GroupKind::tensor), 0.35 * 0.7 * 4, 1e-3);
  EXPECT_NEAR(ms(GroupKind::data), 0.35 * (2 * 0.7 + 6), 1e-3);
}

TEST(SlowHost, HidesSlowLinksOfGroupsOverNodesAlone) {
  const TimedProgram timed = slow_step();
  const CollectiveTuning tuning = timed.collectives.tuning();
  const CollectiveCall sum{.kind = CollectiveKind::all_reduce, .bytes = 1_GiB};
  ASSERT_NE(tuning.find(sum, 8, 4), nullptr);
  EXPECT_NEAR(correction_at(tuning.find(sum, 8, 4)->corrections, 1_GiB), 1 / 0.53, 0.02);
  EXPECT_EQ(tuning.find(sum, 4, 1), nullptr);
}

}  // namespace
}  // namespace tessera
