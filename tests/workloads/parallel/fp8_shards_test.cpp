// Weights that Megatron-FSDP holds in FP8 and divides.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 4, kLayers = 2;
// Of a layer: q, k, v, the output's, two ways up and one down; norms stay in bf16.
constexpr std::int64_t kProducts = 4096LL * (3 * 4096 + 4096 + 2 * 11008 + 11008);
constexpr std::int64_t kNorms = 2 * 4096;

ModelSpec model() {
  ModelSpec model = test::llama2_7b();
  model.layers = kLayers;
  return model;
}

StepOptions divided(Fp8Scaling scaling, bool in_fp8) {
  StepOptions step =
      test::in(Precision::fp8, test::single_gpu(test::megatron(), StepMode::training, 1, 1024));
  step.framework.fp8_scaling = scaling;
  step.framework.fp8_transposes = false;  // of Blackwell
  step.global_batch = step.layout.data = kRanks;
  step.data_parallel.sharding = Sharding::parameters;
  step.formats.fp8_parameters = in_fp8;
  return step;
}

std::int64_t layers_gather(const Program& program) {
  std::int64_t smallest = 1LL << 60;
  for (const ProgramOp& op : program.stages[0].ops)
    if (op.kind == OpKind::all_gather) smallest = std::min(smallest, op.bytes.value());
  return smallest;
}

bool has_op(const std::vector<GraphOp>& ops, const std::string& name) {
  return std::ranges::any_of(ops, [&](const GraphOp& op) { return op.name == name; });
}

TEST(Fp8Shards, TravelInOneByteAndAreNotCastByPasses) {
  for (const Fp8Scaling scaling : {Fp8Scaling::current, Fp8Scaling::mxfp8}) {
    const StepOptions step = divided(scaling, true);
    EXPECT_EQ(layers_gather(build_program(model(), step)), kProducts + 2 * kNorms);
    const ModelGraph graph = build_model_graph(model(), step);
    EXPECT_FALSE(has_op(graph.blocks[1].forward, "mlp.up.weight.fp8"));
    EXPECT_FALSE(has_op(graph.blocks[1].backward, "mlp.up.weight.fp8_transposed"));
  }
  const StepOptions cast = divided(Fp8Scaling::current, false);
  EXPECT_EQ(layers_gather(build_program(model(), cast)), 2 * (kProducts + kNorms));
  EXPECT_TRUE(has_op(build_model_graph(model(), cast).blocks[1].forward, "mlp.up.weight.fp8"));
}

/// Copies that passes make wait for backward with the activations.
TEST(Fp8Shards, AreFreedBehindForward) {
  const auto saved = [](bool in_fp8) {
    return build_model_graph(model(), divided(Fp8Scaling::current, in_fp8)).blocks[1].saved;
  };
  EXPECT_EQ(saved(false) - saved(true), Bytes(kProducts));
}

/// One byte in place of two, or in the two orders of MXFP8 one each.
TEST(Fp8Shards, ShareTheirBytes) {
  const auto held = [](Fp8Scaling scaling, bool in_fp8) {
    const Program program = build_program(model(), divided(scaling, in_fp8));
    return program.stages[0].static_parts[MemoryCategory::parameters];
  };
  EXPECT_EQ(held(Fp8Scaling::current, false) - held(Fp8Scaling::current, true),
            Bytes(kLayers * kProducts / kRanks));
  EXPECT_EQ(held(Fp8Scaling::mxfp8, false), held(Fp8Scaling::mxfp8, true));
}

TEST(Fp8Shards, AreTransformerEnginesAlone) {
  EXPECT_EQ(test::refusal(model(), divided(Fp8Scaling::current, true)), "");
  StepOptions other = divided(Fp8Scaling::current, true);
  other.framework.transformer_engine = false;
  EXPECT_THAT(test::refusal(model(), other), HasSubstr("Transformer Engine"));
  StepOptions frozen = divided(Fp8Scaling::current, true);
  frozen.lora_rank = 8;
  EXPECT_THAT(test::refusal(model(), frozen), HasSubstr("of frozen weights"));
}

}  // namespace
}  // namespace tessera
