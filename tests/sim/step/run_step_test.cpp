#include "sim/step/run_step.h"

#include <gtest/gtest.h>

#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"

namespace tessera {
namespace {

const std::filesystem::path kSources(TESSERA_SOURCE_DIR);

Scenario scenario() {
  const Catalog catalog(kSources / "configs");
  Scenario loaded = load_scenario("gpt2-large_4xh100_dp4", {}, catalog);
  loaded.predictor_form = PredictorForm::roofline;
  return loaded;
}

TEST(RunStep, TheReportIsOfTheTimeline) {
  const auto [reported, simulated] = forked([] {
    const StepRun run = run_step(scenario(), {});
    return std::array{run.report.step_time.value(), run.timeline.step_time.value()};
  });
  const double alone = forked([] { return step_time_of(scenario(), {}).value(); });
  EXPECT_GT(reported, 0.0);
  EXPECT_EQ(reported, simulated);
  EXPECT_EQ(reported, alone);
}

TEST(RunStep, MemoryIsRecordedWhereAskedFor) {
  const auto changes = [](Recording recording) {
    return forked([&] { return run_step(scenario(), {}, recording).timeline.memory.size(); });
  };
  EXPECT_EQ(changes(Recording::peaks), 0u);
  EXPECT_GT(changes(Recording::every_change), 0u);
}

TEST(RunStep, SaysWhichPassEnded) {
  const auto passes = forked([] {
    std::vector<std::string> ended;
    run_step(scenario(), {}, Recording::peaks,
             [&](const std::string& pass) { ended.push_back(pass); });
    return ended;
  });
  EXPECT_EQ(passes, (std::vector<std::string>{"plan", "simulate", "report"}));
}

}  // namespace
}  // namespace tessera
