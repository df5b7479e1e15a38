#include "lab/validate/runs/run_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/lab/validate/training_run_rows.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

TrainingRunScore scored(int stages) {
  TrainingRunScore score;
  score.run.layout.pipeline = stages;
  score.error_pct = 1;
  return score;
}

TEST(RunGroups, NumbersStandBySize) {
  std::vector<std::string> stages;
  for (const ErrorGroup& group : group_errors({scored(10), scored(2), scored(1), scored(32)})) {
    if (group.by == "stages") stages.push_back(group.key);
  }
  EXPECT_THAT(stages, ElementsAre("1", "2", "10", "32"));
}

/// A step at 35 % MFU of a job on 16 GPUs that timed an all-reduce.
TrainingRunScore timed(std::optional<double> share_of_promised, int gpus = 16) {
  TrainingRunScore score = scored(1);
  score.mfu = 0.35;
  score.run.n_gpus = gpus;
  score.run.gpus_per_node = 8;
  score.run.all_reduce = 100_GBps;
  score.fabric_share = share_of_promised;
  return score;
}

TEST(RunGroups, SoundFabricsAreThoseOfANodeAndThoseThatReachMostOfWhatIsPromised) {
  TrainingRunScore not_timed = timed({}, 8);
  not_timed.run.all_reduce = {};
  const auto groups = group_errors({timed(0.7), timed(0.69), timed({}, 8), not_timed});
  const auto sound = std::ranges::find(groups, "mfu on a sound fabric", &ErrorGroup::by);
  ASSERT_NE(sound, groups.end());
  EXPECT_EQ(sound->key, "30 % and more");
  EXPECT_EQ(sound->errors.n, 2);
}

TrainingRunScore judged(const std::string& model, RunOutcome outcome, bool fits) {
  TrainingRunScore score;
  score.run.model = model;
  score.run.outcome = outcome;
  score.fits = fits;
  return score;
}

TEST(RunGroups, VerdictsAreGivenByModelWhereSomeJobWasOutOfMemory) {
  using enum RunOutcome;
  const TrainingRunScore small = judged("small", ran, true);
  EXPECT_THAT(group_verdicts({small, judged("large", ran, true)}), ElementsAre());
  const auto groups =
      group_verdicts({small, judged("large", out_of_memory, false),
                      judged("large", out_of_memory, true), judged("large", not_stated, true)});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].model, "large");
  EXPECT_EQ(groups[0].verdicts.out_of_memory, 2);
  EXPECT_EQ(groups[0].verdicts.out_of_memory_found, 1);
  EXPECT_EQ(groups[1].verdicts.ran_found, 1);
}

TrainingRuns runs_of(const std::string& folder, const std::string& ids) {
  std::string rows;
  for (const char id : ids)
    rows += test::row(std::string(1, id), "NeMo", "bf16", "gpt", "none", "1", "0.04,,");
  TrainingRuns runs = test::read(rows);
  runs.file = folder + ".csv";
  return runs;
}

TEST(TogetherRuns, StandOneFileBehindTheOther) {
  const TrainingRuns all = together({runs_of("a", "xy"), runs_of("b", "z")});
  std::vector<std::string> ids;
  for (const TrainingRun& run : all.runs) ids.push_back(run.id);
  EXPECT_THAT(ids, ElementsAre("x", "y", "z"));
  EXPECT_THROW(together({runs_of("a", "x"), runs_of("a", "x")}), InputError);
}

TEST(TogetherRuns, WithoutTimesAreJudgedByMemoryAlone) {
  TrainingRuns runs = runs_of("a", "x");
  leave_out_times(runs);
  EXPECT_FALSE(runs.runs.at(0).step_time);
  EXPECT_EQ(runs.runs.at(0).outcome, RunOutcome::ran);
}

}  // namespace
}  // namespace tessera
