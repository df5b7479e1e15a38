#include "lab/validate/models/score_baselines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/fit/baselines/baseline_predictor.h"
#include "lab/validate/models/baseline_text.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

TEST(BaselinePredictor, TakesTheBaselinesTimeAndNothingUnlikeItsKernels) {
  const BaselinePredictor predictor(
      [](const Kernel& kernel) { return 1e-6 * static_cast<double>(kernel.rows); });
  EXPECT_EQ(predictor.duration({.rows = 3}), 3_us);
  EXPECT_THROW(predictor.predict({.kind = KernelKind::attention}), InputError);
  EXPECT_THROW(predictor.predict({.precision = Precision::bf16}), InputError);
}

TEST(BaselineText, NamesEveryPredictorThatSaidSomething) {
  BaselineComparison comparison;
  const ErrorSummary ours = summarize_errors({10});
  comparison.groups = {{"Tessera", "gpu and model", "V100-PCIe-32GB bert_large", ours},
                       {"NeuSight", "gpu and model", "V100-PCIe-32GB bert_large", {}},
                       {"regression", "gpu and model", "V100-PCIe-32GB bert_large", ours},
                       {"plain MLP", "gpu and model", "V100-PCIe-32GB bert_large", ours}};
  const std::string table = baseline_table(comparison);
  EXPECT_THAT(table, HasSubstr("V100-PCIe-32GB bert_large: Tessera n   1   mean |error|  10.0 %"));
  EXPECT_THAT(table, ::testing::Not(HasSubstr("bert_large: NeuSight"))) << "it said nothing";
  EXPECT_THAT(baseline_picture(comparison), HasSubstr("V100-PCIe-32GB bert_large"));
}

}  // namespace
}  // namespace tessera
