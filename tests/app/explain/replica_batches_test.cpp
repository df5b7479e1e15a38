// Micro-batches of replicas that differ in speed.
#include "app/explain/replica_batches.h"

#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "tests/app/explain/shipped.h"

namespace tessera {
namespace {

using test::shipped_configs;
using test::trained;
using testing::ElementsAre;
using testing::HasSubstr;

/// On 64 H100, a sample in a micro-batch.
constexpr const char* kJob = "gpt3-2.7b_64xh100_dp64_bf16";

/// Four replicas with six micro-batches each; the last is `slowdown` times slower.
Scenario islands(double slowdown, std::vector<std::string> overrides = {}) {
  overrides.insert(
      overrides.begin(),
      {"parallelism.data=4", "training.global_batch=24",
       "perturbation.gpus=[{replicas: 3, slowdown: " + std::to_string(slowdown) + "}]"});
  return load_scenario(kJob, overrides, shipped_configs());
}

int sum_of(const std::vector<int>& counts) {
  return std::accumulate(counts.begin(), counts.end(), 0);
}

TEST(ReplicaBatches, TheSlowReplicaTakesFewerAndTheStepIsShorter) {
  const BatchPlan plan = plan_batches(islands(2), trained());
  EXPECT_THAT(plan.equal.counts, ElementsAre(6, 6, 6, 6));
  // Speeds of 1, 1, 1 and 1/2: 24 / 3.5 = 6.9 micro-batches on each fast one, 3.4 on the slow one.
  EXPECT_THAT(plan.chosen.counts, ElementsAre(7, 7, 7, 3));
  EXPECT_LT(plan.chosen.step, plan.equal.step * 0.75);
}

TEST(ReplicaBatches, NoMicroBatchIsLostAndNoMoveWouldHelp) {
  const Scenario scenario = islands(1.4);
  const BatchPlan plan = plan_batches(scenario, trained());
  EXPECT_EQ(sum_of(plan.chosen.counts), 24);
  for (std::size_t from = 0; from < 4; ++from) {
    Scenario moved = scenario;
    std::vector<int> counts = plan.chosen.counts;
    --counts[from];
    ++counts[(from + 1) % 4];
    moved.step.split.micro_batches_per_replica = counts;
    // As given: the search starts from there, and finds nothing worse than what it found before.
    EXPECT_GE(plan_batches(moved, trained()).equal.step, plan.chosen.step);
  }
}

TEST(ReplicaBatches, AUsersOwnNumbersAreWhatTheStepIsComparedWith) {
  const Scenario fixed = islands(2, {"parallelism.micro_batches_per_replica=[7, 7, 7, 3]"});
  const BatchPlan plan = plan_batches(fixed, trained());
  EXPECT_THAT(plan.equal.counts, ElementsAre(7, 7, 7, 3));
  EXPECT_EQ(plan.chosen.step, plan.equal.step);
  EXPECT_THAT(table_text(plan), HasSubstr("no other numbers"));
}

TEST(ReplicaBatches, AnInterleavedScheduleGivesThemInGroups) {
  const Scenario scenario = load_scenario(
      kJob,
      std::vector<std::string>{"parallelism.data=2", "parallelism.pipeline=2",
                               "parallelism.virtual_stages=2", "training.schedule=interleaved_1f1b",
                               "training.global_batch=24",
                               "perturbation.gpus=[{replicas: 1, slowdown: 2}]"},
      shipped_configs());
  const BatchPlan plan = plan_batches(scenario, trained());
  // 16 and 8 end together; the pipeline's two stages take micro-batches two by two.
  EXPECT_THAT(plan.chosen.counts, ElementsAre(16, 8));
}

TEST(ReplicaBatches, ReplicasThatAreAlikeOrMeetInEveryMicroBatchAreRefused) {
  const Scenario alike = load_scenario(kJob, {}, shipped_configs());
  EXPECT_THROW(plan_batches(alike, trained()), InputError);
  const Scenario alone = load_scenario("gpt2-large_4xh100_tp4", {}, shipped_configs());
  EXPECT_THROW(plan_batches(alone, trained()), InputError);
  const Scenario sharded =
      islands(2, {"training.framework=fsdp", "training.data_parallel.sharding=parameters"});
  EXPECT_THROW(plan_batches(sharded, trained()), InputError);
}

TEST(ReplicaBatches, TheTableNamesReplicasAndFitsATerminal) {
  const std::string text = table_text(plan_batches(islands(2), trained()));
  EXPECT_THAT(text, HasSubstr("0-2 "));
  EXPECT_THAT(text, HasSubstr("micro_batches_per_replica:\n    [7, 7, 7, 3]\n"));
}

}  // namespace
}  // namespace tessera
