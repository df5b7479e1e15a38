#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// GPT-3 XL on two replicas of two stages; micro-batches of one sequence.
Scenario two_replicas(std::vector<std::string> settings) {
  settings.insert(settings.begin(),
                  {"parallelism.data=2", "parallelism.pipeline=2", "predictor.form=roofline"});
  const Catalog catalog(TESSERA_SOURCE_DIR "/configs");
  return load_scenario("gpt3-xl_4xh100_pp4_1f1b", settings, catalog);
}

Scenario even(int count, std::vector<std::string> settings = {}) {
  settings.insert(settings.begin(), "training.global_batch=" + std::to_string(2 * count));
  return two_replicas(settings);
}

Scenario uneven(int first, int second, std::vector<std::string> settings = {}) {
  settings.insert(settings.begin(),
                  {"training.global_batch=" + std::to_string(first + second),
                   "parallelism.micro_batches_per_replica=[" + std::to_string(first) + ", " +
                       std::to_string(second) + "]"});
  return two_replicas(settings);
}

double time_of(const Scenario& scenario) {
  return forked([&] { return step_time_of(scenario, {}).value(); });
}

std::string refusal_of(auto make) {
  try {
    make();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(UnevenBatches, EqualNumbersAreTheEvenStep) {
  EXPECT_EQ(time_of(uneven(6, 6)), time_of(even(6)));
}

TEST(UnevenBatches, TheReplicaWithMostDecidesWhereGpusAreAlike) {
  // The gradients meet once, behind the last backward of the slower replica.
  EXPECT_NEAR(time_of(uneven(8, 4)) / time_of(even(8)), 1, 1e-9);
  EXPECT_NEAR(time_of(uneven(4, 8)) / time_of(even(8)), 1, 1e-9);
}

TEST(UnevenBatches, FewerForTheSlowReplicaShortenTheStep) {
  const std::string slow = "perturbation.gpus=[{replicas: \"1\", slowdown: 2}]";
  // 12 micro-batches: a slow replica takes twice the time for its 6, the time of a fast one for
  // its 8 with 4. What fills the pipeline and updates is slow in both.
  const double together = time_of(even(6, {slow})), apart = time_of(uneven(8, 4, {slow}));
  EXPECT_LT(apart, 0.85 * together);
  EXPECT_GT(apart, time_of(even(8)));
}

TEST(UnevenBatches, WorkIsCountedByMicroBatches) {
  const TimedProgram most = plan_step(even(8), {}), less = plan_step(uneven(8, 4), {});
  EXPECT_NEAR(less.program.model_flops.value() / most.program.model_flops.value(), 12.0 / 16,
              1e-12);
  EXPECT_EQ(less.program.sequences_per_step, 12);
  EXPECT_THAT(less.program.kind_of_replica, ElementsAre(0, 1));
  EXPECT_EQ(less.program.stages.size(), 4u);
}

TEST(UnevenBatches, AreFoldedReplicaByReplica) {
  std::vector<std::string> four = {"parallelism.data=4", "parallelism.pipeline=1",
                                   "training.global_batch=12",
                                   "parallelism.micro_batches_per_replica=[4, 2, 4, 2]"};
  const Scenario scenario = two_replicas(four);
  const auto representative =
      forked([&] { return run_step(scenario, {}).report.folding.representative; });
  EXPECT_THAT(representative, ElementsAre(0, 1, 0, 1));
}

TEST(UnevenBatches, ThatCannotBeAreRefusedByName) {
  EXPECT_THAT(refusal_of([] { uneven(8, 4, {"training.micro_batches=6"}); }),
              HasSubstr("both say how many"));
  EXPECT_THAT(refusal_of([] { uneven(8, 4, {"training.global_batch=13"}); }),
              HasSubstr("are 12, and global_batch = 13 is not micro_batch = 1 times"));
  EXPECT_THAT(refusal_of([] { uneven(8, 4, {"parallelism.micro_batches_per_replica=[8, 2, 2]"}); }),
              HasSubstr("has 3 numbers for 2 replicas"));
  EXPECT_THAT(refusal_of([] { uneven(8, 4, {"training.data_parallel.sharding=parameters"}); }),
              HasSubstr("meet in every micro-batch: gradients or parameters are divided"));
}

}  // namespace
}  // namespace tessera
