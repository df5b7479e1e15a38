#include "app/fit/memory_spread.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

const MemorySpread kTenth{0.9, 1.1, "a tenth each way"};

TEST(FitVerdict, FitsWhereTheUpperEndOfTheIntervalDoes) {
  // 1.1 * 70 GiB = 77 GiB.
  EXPECT_EQ(verdict_of(70_GiB, 77_GiB, kTenth), FitVerdict::fits);
  EXPECT_EQ(verdict_of(70_GiB, 77_GiB - 1_B, kTenth), FitVerdict::within_error);
}

TEST(FitVerdict, DoesNotFitWhereTheLowerEndIsTooMuch) {
  // 0.9 * 70 GiB = 63 GiB.
  EXPECT_EQ(verdict_of(70_GiB, 63_GiB, kTenth), FitVerdict::within_error);
  EXPECT_EQ(verdict_of(70_GiB, 63_GiB - 1_B, kTenth), FitVerdict::does_not_fit);
}

Scenario scenario_with(const char* profile, StepMode mode) {
  Scenario scenario;
  scenario.step.framework.name = profile;
  scenario.step.mode = mode;
  return scenario;
}

TEST(MemorySpread, ProfilesWithoutMeasuredPeaksHaveAWiderOneAndSaySo) {
  const MemorySpread measured = memory_spread(scenario_with("megatron", StepMode::training));
  const MemorySpread judged = memory_spread(scenario_with("hf-eager", StepMode::training));
  EXPECT_LT(judged.low, measured.low);
  EXPECT_GT(judged.high, measured.high);
  EXPECT_NE(judged.basis.find("hf-eager"), std::string::npos);
}

TEST(MemorySpread, NanotronHasPeaksOfItsOwn) {
  const MemorySpread own = memory_spread(scenario_with("nanotron", StepMode::training));
  const MemorySpread judged = memory_spread(scenario_with("hf-eager", StepMode::training));
  EXPECT_NE(own.basis.find("measured peaks of nanotron"), std::string::npos);
  EXPECT_GT(own.low, judged.low);
  const MemorySpread infers = memory_spread(scenario_with("nanotron", StepMode::inference));
  EXPECT_EQ(infers.low, judged.low);
}

TEST(MemorySpread, PeaksOfTrainingSayLittleOfInference) {
  const MemorySpread trains = memory_spread(scenario_with("megatron", StepMode::training));
  const MemorySpread infers = memory_spread(scenario_with("megatron", StepMode::inference));
  EXPECT_GT(infers.high, trains.high);
}

}  // namespace
}  // namespace tessera
