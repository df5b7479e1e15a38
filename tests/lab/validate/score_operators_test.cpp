#include "lab/validate/models/score_operators.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/validate/models/model_run_scenario.h"
#include "lab/validate/models/operator_text.h"
#include "predictor/weights/weights.h"
#include "tests/hw/units/measurements.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

const Catalog& operator_catalog() {
  static const Catalog shipped(TESSERA_SOURCE_DIR "/configs");
  return shipped;
}

/// Every kernel takes its bytes in nanoseconds and a launch overhead of one microsecond.
class BytesPredictor final : public KernelPredictor {
 public:
  KernelPrediction predict(const Kernel& kernel) const override {
    return {.duration = Seconds(static_cast<double>(kernel.bytes().value()) * 1e-9)};
  }
  Seconds isolated_launch_overhead(const Kernel&) const override { return Seconds(1e-6); }
};

GraphOp kernel_op(const std::string& name, KernelKind kind, std::int64_t elements, int origin) {
  GraphOp op;
  op.name = name;
  op.kernel.kind = kind;
  op.kernel.rows = 1;
  op.kernel.cols = elements;
  op.kernel.bytes_read = Bytes(elements);
  op.origin = origin;
  return op;
}

TimedOperator timed_op(const std::string& op, std::int64_t elements, double forward_us) {
  TimedOperator timed;
  timed.op = op;
  timed.output = {elements};
  timed.forward = Seconds(forward_us * 1e-6);
  return timed;
}

/// One block: softmax over 1000 elements with two backward kernels, and a copy nobody timed.
ModelGraph small_graph() {
  Block block;
  block.forward = {kernel_op("attention.softmax", KernelKind::softmax, 1000, -1),
                   kernel_op("attention.context.copy", KernelKind::copy, 1000, -1)};
  block.backward = {kernel_op("attention.softmax.mul", KernelKind::elementwise, 1000, 0),
                    kernel_op("attention.softmax.backward", KernelKind::softmax, 1000, 0),
                    kernel_op("hidden.join", KernelKind::elementwise, 500, -1)};
  ModelGraph graph;
  graph.blocks = {block};
  return graph;
}

OperatorSums sums_of(const std::vector<OperatorMatch>& matches, OperatorPass pass) {
  OperatorSums sums;
  for (const OperatorMatch& match : matches) {
    if (match.pass == pass) sums.add(match);
  }
  return sums;
}

TEST(MatchOperators, KernelsOfOneOperatorPayOneLaunchOverhead) {
  TimedOperator softmax = timed_op("softmax", 1000, 4);
  softmax.backward = Seconds(6e-6);
  const auto matches = match_operators({softmax}, small_graph(), BytesPredictor());
  const OperatorSums forward = sums_of(matches, OperatorPass::forward);
  EXPECT_EQ(forward.matched, 1);
  EXPECT_NEAR(forward.predicted.value(), 1e-6 + 1e-6, 1e-12);  // 1000 bytes and the overhead
  EXPECT_NEAR(*forward.error_pct(), -50, 1e-6);                // 2 us against 4 us
  const OperatorSums backward = sums_of(matches, OperatorPass::backward);
  EXPECT_EQ(backward.kernels, 2);
  EXPECT_NEAR(backward.predicted.value(), 2e-6 + 1e-6, 1e-12);
}

TEST(MatchOperators, WhatOneSideLacksStaysOutOfTheError) {
  const auto matches =
      match_operators({timed_op("dropout", 1000, 9)}, small_graph(), BytesPredictor());
  const OperatorSums forward = sums_of(matches, OperatorPass::forward);
  EXPECT_EQ(forward.matched, 0);
  EXPECT_FALSE(forward.error_pct());
  EXPECT_EQ(forward.only_timed, 1);
  EXPECT_EQ(forward.only_launched, 2);                                   // softmax, copy
  EXPECT_EQ(sums_of(matches, OperatorPass::backward).only_launched, 2);  // softmax's, the join
}

TEST(MatchOperators, SizesHaveToAgree) {
  const auto matches =
      match_operators({timed_op("softmax", 999, 4)}, small_graph(), BytesPredictor());
  EXPECT_EQ(sums_of(matches, OperatorPass::forward).matched, 0);
}

TEST(MatchOperators, EqualOperatorsArePairedOnceEach) {
  const auto matches = match_operators({timed_op("softmax", 1000, 4), timed_op("softmax", 1000, 4)},
                                       small_graph(), BytesPredictor());
  const OperatorSums forward = sums_of(matches, OperatorPass::forward);
  EXPECT_EQ(forward.matched, 1);
  EXPECT_EQ(forward.only_timed, 1);
}

OperatorValidation score(const std::vector<OperatorRun>& runs, PredictorForm form) {
  const auto scenario_of = [&](const ModelRun& run) {
    return scenario_of_run(run, form, operator_catalog());
  };
  return score_operators(runs, scenario_of, PredictorWeights());
}

OperatorRun gelu_run(const std::string& mode) {
  OperatorRun run;
  run.run.where = "operators.csv:2";
  run.run.gpu = "V100-PCIe-32GB";
  run.run.parallelism = "single";
  run.run.model = "bert_large";
  run.run.mode = mode;
  run.run.seq_len = 512;
  run.run.batch = 8;
  run.operators = {timed_op("gelu", 8 * 512 * 4096, 400)};
  return run;
}

TEST(ScoreOperators, CountsWhatIsTimedAndLaunched) {
  const OperatorValidation validation = score({gelu_run("inference")}, PredictorForm::roofline);
  ASSERT_EQ(validation.runs.size(), 1u);
  const OperatorRunScore& run = validation.runs[0];
  EXPECT_TRUE(run.skipped.empty());
  EXPECT_EQ(run.total.matched, 1);
  // 8 bytes for each of 16.8 M elements at 900 GB/s (V100-PCIe-32GB): 149 us
  EXPECT_NEAR(run.total.predicted.value(), 149e-6, 1e-6);
  const bool has_queries =
      std::any_of(run.unmatched.begin(), run.unmatched.end(), [](const OperatorCount& count) {
        return count.key == OperatorKey{OperatorClass::linear, 8 * 512 * 1024, 1024} &&
               count.timed == 0 && count.launched == 4;  // query, key, value, output
      });
  EXPECT_TRUE(has_queries);
  EXPECT_EQ(validation.gpus.at(0).total.matched, 1);
  EXPECT_EQ(validation.summary.n, 1);
}

TEST(ScoreOperators, FusedRunsAndUnknownGpusAreSkippedWithTheReason) {
  OperatorRun unknown = gelu_run("inference");
  unknown.run.gpu = "V101";
  const OperatorValidation validation =
      score({gelu_run("inference_fused"), unknown}, PredictorForm::roofline);
  EXPECT_THAT(validation.runs.at(0).skipped, HasSubstr("merges operators"));
  EXPECT_THAT(validation.runs.at(1).skipped, HasSubstr("V101"));
  EXPECT_EQ(validation.summary.n, 0);
  EXPECT_THAT(operator_table(validation), HasSubstr("skipped: "));
  EXPECT_THAT(operator_table(validation), HasSubstr("totals: nothing to compare"));
  EXPECT_THAT(operator_json(validation), HasSubstr("\"schema\": \"tessera.operators/1\""));
}

TEST(ScoreOperators, CsvHasALinePerClassThatOccurs) {
  const std::string text = operator_csv(score({gelu_run("inference")}, PredictorForm::roofline));
  EXPECT_THAT(text, HasSubstr("\nV100-PCIe-32GB,bert_large,inference,512,8,forward,activation,1,1,"
                              "400.000,"));
}

/// Every product, softmax and norm that was timed is in the graph, in both directions.
TEST(MeasuredOperatorRuns, ProductsSoftmaxAndNormsMatchWithoutRest) {
  const auto file = measurements_folder() / "models" / "fp32_per_op.csv";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is missing";
  const OperatorValidation validation = score(read_operator_runs(file), PredictorForm::roofline);
  ASSERT_EQ(validation.runs.size(), 34u);
  for (const OperatorRunScore& run : validation.runs) {
    EXPECT_EQ(run.skipped, "");
    for (const OperatorClassScore& entry : run.classes) {
      const bool exact = entry.operator_class <= OperatorClass::layer_norm &&
                         entry.pass != OperatorPass::accumulate;  // tied tables: joined, not added
      if (!exact) continue;
      EXPECT_EQ(entry.sums.only_timed, 0) << run.run.model << label_of(entry.operator_class);
      EXPECT_EQ(entry.sums.only_launched, 0) << run.run.model << label_of(entry.operator_class);
    }
  }
}

}  // namespace
}  // namespace tessera
