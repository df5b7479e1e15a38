#include "lab/validate/power/power_caps.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/hw/units/measurements.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

const char* const kHeader =
    "gpu,tdp_W,cap_W,dataset,model,batch,optimizer,time_per_epoch_s,mean_power_W\n";

std::vector<CappedRun> runs_of(const std::string& rows) {
  const ScratchFolder folder;
  return predict_capped_runs(folder.write("caps.csv", kHeader + rows),
                             Catalog(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs"));
}

TEST(PowerCaps, AJobThatNeverReachesTheCapIsAsWithout) {
  const auto runs = runs_of(
      "V100-PCIe-32GB,250,250,a,b,8,adam,10,100\n"
      "V100-PCIe-32GB,250,150,a,b,8,adam,10,100\n");
  ASSERT_EQ(runs.size(), 1u);  // the highest cap is where the prediction starts
  EXPECT_NEAR(runs[0].time_error_pct(), 0, 1e-9);
  EXPECT_NEAR(runs[0].energy_error_pct(), 0, 1e-9);
}

TEST(PowerCaps, ACapIsKeptOnTheMean) {
  const auto runs = runs_of(
      "V100-PCIe-32GB,250,250,a,b,8,adam,10,220\n"
      "V100-PCIe-32GB,250,150,a,b,8,adam,12,132\n");
  EXPECT_NEAR(runs.at(0).predicted_power.value(), 0.88 * 150, 0.01);
  EXPECT_GT(runs[0].predicted_time, Seconds(10));
}

TEST(PowerCaps, BadRowsAreNamed) {
  try {
    runs_of("V100-PCIe-32GB,250,none,a,b,8,adam,10,220\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(":2: cap_W = 'none' is no positive number"));
  }
}

TEST(PowerCaps, TheMeasuredCardsAreWithinEightPercent) {
  const auto file = measurements_folder() / "power/gpu_power_caps.csv";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "needs " << file;
  // By a curve that is fitted to the other card alone.
  const auto runs = predict_by_other_gpus(
      predict_capped_runs(file, Catalog(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs")));
  for (const char* gpu : {"V100-PCIe-32GB", "P100-PCIe-16GB"}) {
    std::vector<double> time, energy;
    for (const CappedRun& run : runs) {
      if (run.gpu != gpu) continue;
      time.push_back(run.time_error_pct());
      energy.push_back(run.energy_error_pct());
    }
    EXPECT_LT(summarize_errors(time).mean_abs_error_pct, 8) << gpu;
    EXPECT_LT(summarize_errors(energy).mean_abs_error_pct, 8) << gpu;
  }
}

}  // namespace
}  // namespace tessera
