#include "lab/validate/studies/rule_study.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/fit/fp32/spread_fit.h"
#include "lab/fit/train.h"
#include "lab/validate/studies/training_text.h"
#include "sim/config/load.h"
#include "tests/hw/units/measurements.h"

namespace tessera {
namespace {

const Catalog& catalog() {
  static const Catalog shipped(TESSERA_SOURCE_DIR "/configs");
  return shipped;
}

ModelRun run_on(const std::string& gpu, int gpus = 1) {
  ModelRun run;
  run.where = "models.csv:7";
  run.gpu = gpu;
  run.n_gpus = gpus;
  run.parallelism = "single";
  run.model = "gpt2_large";
  run.mode = "inference";
  run.seq_len = 1024;
  run.batch = 1;
  run.measured = 0.2_s;
  return run;
}

class Planted : public testing::TestWithParam<const char*> {};

TEST_P(Planted, ASingleGpuRowOfAJudgeIsRefused) {
  const std::vector<GpuData> nothing;
  try {
    study_rules(Folds(nothing, FoldDepth::two), {run_on("T4"), run_on(GetParam())}, catalog());
    FAIL() << "chose rules on " << GetParam();
  } catch (const InputError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_EQ(error.problems()[0].where, "models.csv:7");
    EXPECT_EQ(error.problems()[0].what, std::string("is a single-GPU row of ") + GetParam());
    EXPECT_THAT(error.problems()[0].hint, testing::HasSubstr("judge the model"));
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, Planted,
                         testing::Values("H100-SXM5-80GB", "L4", "A100-SXM4-80GB",
                                         "A100-PCIe-80GB"));

TEST(RuleStudy, NeedsARowOfATrainedGpu) {
  const std::vector<GpuData> nothing;
  const Folds folds(nothing, FoldDepth::two);
  EXPECT_THROW(study_rules(folds, {run_on("T4")}, catalog()), InputError);
  EXPECT_THROW(study_rules(folds, {run_on("H100-SXM5-80GB", 4)}, catalog()), InputError);
}

TEST(MeanError, LeavesOutGpusWithoutRows) {
  EXPECT_DOUBLE_EQ(mean_error(ErrorByGpu{1, std::nan(""), 3}), 2);
  EXPECT_TRUE(std::isnan(mean_error(ErrorByGpu{})));
}

/// The whole study on the measurements, once for all tests of it.
class MeasuredStudy : public testing::Test {
 protected:
  struct Results {
    PredictorWeights committed;
    RuleStudy study;
    Spreads spreads;
    std::vector<Coverage> coverage;
  };

  static const Results& results() {
    static const Results all = [] {
      const auto lookup = [](const std::string& id) { return load_gpu(id, catalog()); };
      const TrainingSet set = read_training_set(measurements_folder(), lookup);
      const Folds folds(set.gpus, FoldDepth::two);
      Results r{.committed = load_weights(TESSERA_SOURCE_DIR "/predictor/weights/tessera.pb")};
      r.study =
          study_rules(folds, read_model_runs(measurements_folder() / "models/fp32.csv"), catalog());
      r.spreads = fit_spreads(folds, r.study.shipped(), folds.size());
      r.coverage = leave_one_out_coverage(folds, r.study.shipped());
      return r;
    }();
    return all;
  }

  void SetUp() override {
#ifndef NDEBUG
    GTEST_SKIP() << "optimised builds only: the fits take minutes without optimisation";
#endif
    if (!std::filesystem::exists(measurements_folder() / "models/fp32.csv"))
      GTEST_SKIP() << "no measurements in " << measurements_folder()
                   << "; set TESSERA_MEASUREMENTS";
  }
};

// One test, because ctest runs each in a process of its own and the fits take seconds.
TEST_F(MeasuredStudy, ChoosesTheShippedRuleAndSpreadsAndMeetsItsTargets) {
  const RuleStudy& study = results().study;
  EXPECT_EQ(study.shipped(), results().committed.rule);
  EXPECT_LE(study.plain_error(), 9);
  EXPECT_LE(mean_error(study.selected), 12);
  EXPECT_EQ(study.selected.size(), 5u);
  EXPECT_LE(mean_error(study.measured), 8);
  for (std::size_t c = 0; c < kSpreadClasses; ++c) {
    EXPECT_EQ(results().spreads.by_rule[c].gpu, results().committed.spreads.by_rule[c].gpu) << c;
    EXPECT_EQ(results().spreads.measured[c].shape, results().committed.spreads.measured[c].shape);
  }
  double inside = 0;
  for (const Coverage& entry : results().coverage) inside += entry.share;
  inside /= static_cast<double>(results().coverage.size());
  EXPECT_GE(inside, 0.75);
  EXPECT_LE(inside, 0.90);
  EXPECT_THAT(rule_study_table(study), testing::HasSubstr("selection-adjusted"));
}

}  // namespace
}  // namespace tessera
