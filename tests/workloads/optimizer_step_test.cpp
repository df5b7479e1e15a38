#include "workloads/optimizers/optimizer_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

using test::single_gpu;
using ::testing::ElementsAre;

constexpr std::int64_t kParameters = 1'000'000;

StepOptions with(OptimizerKind kind, bool clip = true) {
  StepOptions step = single_gpu(test::megatron_local(), StepMode::training, 1, 64);
  step.optimizer = kind;
  step.clip_gradients = clip;
  return step;
}

/// Bytes per parameter of each pass.
std::vector<std::int64_t> bytes_of(const std::vector<GraphOp>& ops) {
  std::vector<std::int64_t> bytes;
  for (const GraphOp& op : ops) {
    if (op.kind != GraphOpKind::host_sync) bytes.push_back(op.kernel.bytes().value() / kParameters);
  }
  return bytes;
}

TEST(Lamb, MovesWhatItsKernelsReadAndWrite) {
  for (const bool clip : {true, false}) {
    const OptimizerStep step = optimizer_step(with(OptimizerKind::lamb, clip), kParameters);
    // The norm of all gradients is computed whether it clips or not, and clips in stage 1.
    EXPECT_THAT(bytes_of(step.norm), ElementsAre(4));
    // weights; gradient, weight and two moments in, update and moments out; update; update and
    // weight in, weight out
    EXPECT_THAT(bytes_of(step.update), ElementsAre(4, 16 + 12, 4, 8 + 4));
  }
}

TEST(Lamb, WorksOnMasterWeightsInSixteenBits) {
  StepOptions step = with(OptimizerKind::lamb);
  step.precision = Precision::bf16;
  step.formats = step.framework.formats(Precision::bf16);
  // The same in fp32; then the model's weights from them: 4 in, 2 out.
  EXPECT_THAT(bytes_of(optimizer_step(step, kParameters).update), ElementsAre(4, 28, 4, 12, 6));
}

TEST(Lars, MovesTwoNormsAndOnePass) {
  const OptimizerStep step = optimizer_step(with(OptimizerKind::lars, false), kParameters);
  EXPECT_TRUE(step.norm.empty());
  // weights; gradients; gradient, weight and momentum in, weight and momentum out
  EXPECT_THAT(bytes_of(step.update), ElementsAre(4, 4, 12 + 8));
}

TEST(EightBits, KeepAByteOfEachMomentAndAScaleForEvery256) {
  StepOptions step = with(OptimizerKind::adam, false);
  step.formats.optimizer_states = Precision::int8;
  const std::int64_t parameters = 256 * 1000;
  // Two moments of a byte, and two fp32 scales for every 256 numbers.
  EXPECT_EQ(state_bytes(step, parameters)[MemoryCategory::optimizer].value(),
            2 * parameters + 2 * 4 * 1000);
  // Gradient, weight and both moments in, weight and moments out: 4 + 4 + 2, 4 + 2.
  EXPECT_THAT(bytes_of(optimizer_step(step, kParameters).update), ElementsAre(16));
}

TEST(EightBits, TakeAKernelForEachParameter) {
  StepOptions step = with(OptimizerKind::adam, false);
  step.formats.optimizer_states = Precision::int8;
  const OptimizerStep update = optimizer_step(
      step, UpdatedParameters{.parameters = kParameters, .summed = kParameters, .tensors = 17});
  EXPECT_EQ(update.update.front().host_calls, 17);
}

StepOptions unfused(bool per_tensor, bool reads_norm = false) {
  StepOptions step = single_gpu(test::hf_eager(), StepMode::training, 1, 64);
  step.framework.per_tensor_updates = per_tensor;
  step.framework.reads_norm = reads_norm;
  return step;
}

TEST(UnfusedAdam, TakesAKernelForEachParameterAndLineOrOneForEachLine) {
  const UpdatedParameters updated{.parameters = kParameters, .summed = kParameters, .tensors = 17};
  for (const auto& [per_tensor, calls] : {std::pair(true, 17), {false, 1}}) {
    const OptimizerStep update = optimizer_step(unfused(per_tensor), updated);
    ASSERT_EQ(update.update.size(), 1 + 8);  // clipping, and the lines of the rule
    for (const GraphOp& op : update.update) EXPECT_EQ(op.host_calls, calls) << op.name;
  }
}

TEST(UnfusedAdam, WaitsForTheNormThatItsHostReads) {
  for (const bool reads : {true, false}) {
    const OptimizerStep step = optimizer_step(unfused(true, reads), kParameters);
    EXPECT_EQ(step.norm.back().kind == GraphOpKind::host_sync, reads);
  }
}

TEST(UnfusedAdam, ReadsItsNormByASwitchOfHuggingFacesModulesAlone) {
  EXPECT_EQ(test::refusal(test::gpt2_large(), unfused(true, true)), "");
  StepOptions step = with(OptimizerKind::adam);
  step.framework.reads_norm = true;
  EXPECT_NE(test::refusal(test::gpt2_large(), step).find("reads_norm"), std::string::npos);
}

TEST(TensorNorms, KeepAdamsStatesOrSgds) {
  // weight, gradient and two moments, or one
  EXPECT_EQ(bytes_per_parameter(with(OptimizerKind::lamb)), 16);
  EXPECT_EQ(bytes_per_parameter(with(OptimizerKind::lars)), 12);
  EXPECT_EQ(bytes_per_parameter(with(OptimizerKind::lars)),
            bytes_per_parameter(with(OptimizerKind::sgd)));
}

TEST(TensorNorms, AreRefusedWhereRanksDivideTensors) {
  for (const OptimizerKind kind : {OptimizerKind::lamb, OptimizerKind::lars}) {
    StepOptions step = with(kind);
    step.layout.data = 2;
    step.global_batch = 2;
    EXPECT_EQ(test::refusal(test::gpt2_large(), step), "");
    step.data_parallel.sharding = Sharding::optimizer;
    EXPECT_NE(test::refusal(test::gpt2_large(), step), "");
    step = with(kind);
    step.layout.tensor = 2;
    EXPECT_NE(test::refusal(test::gpt2_large(), step), "");
    step.optimizer = OptimizerKind::adam;
    EXPECT_EQ(test::refusal(test::gpt2_large(), step), "");
  }
}

}  // namespace
}  // namespace tessera
