#include "app/expect/run_check.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

const Catalog& catalog() {
  static const Catalog shipped(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs");
  return shipped;
}

std::vector<ExpectedRun> runs_of(const std::string& text) {
  const ScratchFolder folder;
  return read_expected_runs(folder.write("runs.csv", text), {}, catalog());
}

std::string problems_of(const std::string& text) {
  try {
    runs_of(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

/// 100 ms expected, of which 60 forward and 40 bubble.
RunCheck check_of(double forward, double bubble) {
  RunCheck check;
  check.run.step_time = Seconds(0.1);
  check.run.phases.emplace();
  (*check.run.phases)[TimeCategory::forward] = Seconds(0.06);
  (*check.run.phases)[TimeCategory::bubble] = Seconds(0.04);
  check.phases[TimeCategory::forward] = Seconds(forward);
  check.phases[TimeCategory::bubble] = Seconds(bubble);
  check.step_time = check.phases.total();
  return check;
}

TEST(RunCheck, TheToleranceHoldsBothWays) {
  EXPECT_TRUE(check_of(0.06, 0.044).within(0.05));   // +4 %
  EXPECT_FALSE(check_of(0.06, 0.046).within(0.05));  // +6 %
  EXPECT_FALSE(check_of(0.06, 0.034).within(0.05));  // -6 %
}

TEST(RunCheck, ThePhaseThatMovedIsTheOneThatMovedTheStep) {
  // +20 ms in forward, -5 ms of bubble: the step is longer because of forward.
  const auto slower = check_of(0.08, 0.035).moved();
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->phase, TimeCategory::forward);
  EXPECT_NEAR(slower->change().value(), 0.02, 1e-12);
  // +1 ms in forward, -20 ms of bubble: the step is shorter because of the bubble.
  EXPECT_EQ(check_of(0.061, 0.02).moved()->phase, TimeCategory::bubble);
}

TEST(RunCheck, NothingMovedWhereNoPhaseIsKnown) {
  RunCheck check = check_of(0.06, 0.04);
  check.run.phases.reset();
  EXPECT_FALSE(check.moved());
}

TEST(ExpectedRuns, WhatIsRecordedIsReadBackToTheLastBit) {
  RunCheck check = check_of(1.0 / 3, 0.1);
  check.run.scenario = "gpt2-large_4xh100_dp4";
  check.run.settings = "training.micro_batches=1";
  const ExpectedRun run = runs_of(recorded_csv({check})).front();
  EXPECT_EQ(run.scenario, check.run.scenario);
  EXPECT_EQ(run.settings, check.run.settings);
  EXPECT_EQ(run.step_time, check.step_time);
  EXPECT_EQ((*run.phases)[TimeCategory::forward], Seconds(1.0 / 3));
}

TEST(ExpectedRuns, EveryRowSaysWhatIsWrongWithIt) {
  EXPECT_THAT(problems_of("scenario,step_time_s,gpu\ngpt2-large_4xh100_dp4,1,H100\n"),
              HasSubstr("column 'gpu' is unknown"));
  EXPECT_THAT(problems_of("scenario\ngpt2-large_4xh100_dp4\n"),
              HasSubstr("has no column 'step_time_s'"));
  const std::string both =
      problems_of("scenario,step_time_s\nnowhere,1\ngpt2-large_4xh100_dp4,fast\n");
  EXPECT_THAT(both, HasSubstr(":2: nowhere: no such file"));
  EXPECT_THAT(both, HasSubstr(":3: step_time_s = 'fast' is no time"));
  EXPECT_THAT(problems_of("scenario,step_time_s\n"), HasSubstr("has no rows"));
}

}  // namespace
}  // namespace tessera
