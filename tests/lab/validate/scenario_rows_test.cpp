#include "lab/validate/runs/scenario_rows.h"

#include <string>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "sim/config/scenario_source.h"
#include "tests/lab/validate/one_row.h"

namespace tessera {
namespace {

using test::planted;
using test::shipped_configs;

TrainingRuns read_rows(const std::string& text, BadRows bad_rows = BadRows::refuse) {
  return read_training_runs(planted("scenario_rows.csv", text), test::shipped_rules(),
                            {.bad_rows = bad_rows, .catalog = shipped_configs()});
}

std::string refusal_of(const std::string& text) {
  try {
    read_rows(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ScenarioRows, ARowIsTheScenarioThatItNamesWithItsSettings) {
  const TrainingRuns runs = read_rows(
      "scenario,settings,step_time_s,source\n"
      "gpt2-large_4xh100_dp4,training.global_batch=8 training.micro_batch=2,0.356,lab run 7\n");
  ASSERT_EQ(runs.runs.size(), 1U);
  const TrainingRun& run = runs.runs.front();
  EXPECT_EQ(run.gpu, "H100-SXM5-80GB");
  EXPECT_EQ(run.n_gpus, 4);
  EXPECT_EQ(run.global_batch, 8);
  EXPECT_EQ(run.source, "lab");
  EXPECT_EQ(run.step_time, Seconds(0.356));
  const std::vector<std::string> settings{"training.global_batch=8", "training.micro_batch=2"};
  EXPECT_EQ(identifying_bytes(test::scenario_of(run)),
            identifying_bytes(load_scenario("gpt2-large_4xh100_dp4", settings, shipped_configs())));
}

TEST(ScenarioRows, AColumnThatIsNotReadIsNamed) {
  const std::string text = refusal_of("scenario,step_time_s,tp\ngpt2-large_4xh100_dp4,0.2,2\n");
  EXPECT_NE(text.find("column 'tp' beside scenario is not read"), std::string::npos) << text;
}

TEST(ScenarioRows, WhatWasMeasuredHasToBeThereAndClear) {
  const std::string head = "scenario,step_time_s,peak_memory_GiB,memory_metric,outcome\n";
  const std::string row = "gpt2-large_4xh100_dp4,";
  EXPECT_NE(refusal_of(head + row + ",,,\n").find("give what was measured"), std::string::npos);
  EXPECT_NE(refusal_of(head + row + ",22.4,,\n").find("give allocated, reserved or smi"),
            std::string::npos);
  EXPECT_NE(refusal_of(head + row + "0.2,,,oom\n").find("neither a step time nor a peak"),
            std::string::npos);
  EXPECT_NE(refusal_of(head + row + "fast,,,\n").find("step_time_s = 'fast'"), std::string::npos);
  EXPECT_NE(refusal_of(head + row + "1e300,,,\n").find("at most 1e12"), std::string::npos);
  EXPECT_NE(refusal_of(head + ",0.2,,,\n").find("name the scenario that was measured"),
            std::string::npos);
  EXPECT_EQ(refusal_of(head + row + "0.2,22.4,reserved,ok\n"), "");
}

TEST(ScenarioRows, ARowWithoutItsScenarioIsSkippedWithTheReasonAndTheOthersCount) {
  const TrainingRuns runs = read_rows(
      "scenario,settings,step_time_s\n"
      "gpt2-large_4xh100_dp4,,0.2\n"
      "nowhere.yaml,,0.2\n"
      "gpt2-large_4xh100_dp4,training.micro_batch=3,0.2\n",
      BadRows::skip);
  EXPECT_EQ(runs.runs.size(), 1U);
  ASSERT_EQ(runs.skipped.size(), 2U);
  EXPECT_NE(runs.skipped[0].reason.find("nowhere.yaml"), std::string::npos);
  EXPECT_NE(runs.skipped[1].reason.find("global_batch"), std::string::npos);
}

TEST(ScenarioRows, TimedStepsOfOneGpuAreFoundByTheirScenarios) {
  const auto file =
      planted("timed_scenarios.csv",
              "scenario,step_time_s\ngpt2-large_4xh100_dp4,0.2\ngpt2-large_4xa100_dp4,0.4\n");
  const TrainingRuns runs = read_timed_steps(file, test::shipped_rules(), "A100-SXM4-40GB",
                                             {.catalog = shipped_configs()});
  ASSERT_EQ(runs.runs.size(), 1U);
  EXPECT_EQ(runs.runs.front().step_time, Seconds(0.4));
  EXPECT_EQ(runs.left_out, 1);
}

}  // namespace
}  // namespace tessera
