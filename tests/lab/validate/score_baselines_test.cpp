#include "lab/validate/models/score_baselines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/fit/baselines/baseline_predictor.h"
#include "lab/validate/models/baseline_text.h"
#include "lab/validate/models/model_run_scenario.h"
#include "tests/app/explain/shipped.h"

namespace tessera {
namespace {

using test::shipped_configs;
using test::trained;
using ::testing::HasSubstr;

TEST(BaselinePredictor, TakesTheBaselinesTimeAndNothingUnlikeItsKernels) {
  const BaselinePredictor predictor([](const Kernel& kernel) { return 1e-6 * kernel.rows; });
  EXPECT_EQ(predictor.duration({.rows = 3}), 3_us);
  EXPECT_THROW(predictor.predict({.kind = KernelKind::attention}), InputError);
  EXPECT_THROW(predictor.predict({.precision = Precision::bf16}), InputError);
}

/// A GPU whose elementwise kernels all take 2 ms, and nothing else was timed on.
struct OneTime {
  OneTime() {
    for (const std::int64_t rows : {1000, 4000})
      measured.push_back(
          {.op = MeasuredOp::add, .train = true, .rows = rows, .cols = 1000, .latency_us = 2000});
    data.spec = load_gpu("V100-PCIe-32GB", shipped_configs());
    data.traits = gpu_traits(data.spec);
    for (const KernelMeasurement& row : measured) data.rows.push_back(&row);
  }
  std::vector<KernelMeasurement> measured;
  GpuData data;
};

ModelValidation one_run() {
  ModelRun run;
  run.gpu = "V100-PCIe-32GB";
  run.parallelism = "single";
  run.model = "bert_large";
  run.mode = "inference";
  run.seq_len = 128;
  run.batch = 1;
  run.measured = Seconds(0.1);
  ModelRunScore score{.run = run};
  score.error_pct = 10;
  ModelValidation ours;
  ours.rows.push_back(score);
  score.error_pct.reset();  // skipped: nobody is compared on it
  ours.rows.push_back(score);
  return ours;
}

TEST(ScoreBaselines, AddUpTheKernelsOfTheModel) {
  const OneTime gpu;
  const auto scenario_of = [](const ModelRun& run) {
    return scenario_of_run(run, PredictorForm::tessera, shipped_configs());
  };
  const BaselineComparison comparison =
      score_baselines(one_run(), scenario_of, trained(), {&gpu.data}, 2);
  ASSERT_EQ(comparison.rows.size(), 1u);
  const auto& errors = comparison.rows[0].error_pct;
  EXPECT_EQ(errors[0], 10);
  EXPECT_FALSE(errors[1]) << "NeuSight published nothing of it";
  // Products cost the regression nothing: it has seen none. 24 layers have more than four
  // elementwise kernels each, and every one takes 2 ms or more of a step of 100 ms.
  EXPECT_GT(*errors[2], 100 * (24 * 4 * 2e-3 / 0.1 - 1));
  EXPECT_TRUE(errors[3]);
  const std::string table = baseline_table(comparison);
  EXPECT_THAT(table, HasSubstr("gpu V100-PCIe-32GB: Tessera        n   1   mean |error|  10.0 %"));
  EXPECT_THAT(table, ::testing::Not(HasSubstr("NeuSight       n"))) << "no empty lines";
  EXPECT_THAT(baseline_picture(comparison), HasSubstr("V100-PCIe-32GB bert_large"));
}

}  // namespace
}  // namespace tessera
