// Casts ahead of products in NVFP4, and of grouped products in FP8.
#include "workloads/ops/cast_operand.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

constexpr std::int64_t kSequence = 1024;

ModelSpec mixture() {
  ModelSpec model = test::llama2_7b();
  model.layers = 2;
  model.hidden = 1024;
  model.heads = model.kv_heads = 16;
  model.head_dim = 64;
  model.ffn = 2816;
  model.experts = 8;
  model.experts_per_token = 2;
  return model;
}

StepOptions step_in(Precision precision) {
  return test::in(precision, test::single_gpu(test::megatron(), StepMode::training, 1, kSequence));
}

std::int64_t named(const std::vector<GraphOp>& ops, const std::string& end) {
  return std::ranges::count_if(ops, [&](const GraphOp& op) {
    return op.kind == GraphOpKind::kernel && op.name.ends_with(end);
  });
}

const GraphOp& op_of(const std::vector<GraphOp>& ops, const std::string& name) {
  return *std::ranges::find(ops, name, &GraphOp::name);
}

TEST(Fp4, AnActivationIsReadForItsLargestValueAndForEachOrder) {
  // q k v, output, gate and up, down: four weights, cast by one kernel, four inputs by two.
  ModelSpec dense = mixture();
  dense.experts = dense.experts_per_token = 0;
  const Block layer = build_model_graph(dense, step_in(Precision::fp4)).blocks[1];
  EXPECT_EQ(named(layer.forward, ".largest"), 2 * 4);
  EXPECT_EQ(named(layer.forward, ".fp4"), 2 * 4);
  EXPECT_EQ(named(layer.forward, ".hadamard_fp4"), 4);
  EXPECT_EQ(named(layer.backward, ".output_grad.hadamard_fp4"), 4);
  const GraphOp& cast = op_of(layer.forward, "mlp.up.input.fp4");
  const std::int64_t elements = kSequence * 1024;
  EXPECT_EQ(cast.kernel.bytes_read.value(), 2 * elements + 4);
  EXPECT_EQ(cast.kernel.bytes_written.value(), elements / 2 + elements / 16);
}

TEST(Fp4, ProductsReadHalfAByteANumberAndScales) {
  const Block layer = build_model_graph(mixture(), step_in(Precision::fp4)).blocks[1];
  const GraphOp& product = op_of(layer.forward, "attention.output");
  EXPECT_EQ(product.kernel.precision, Precision::fp4);
  const std::int64_t operands = (kSequence + 1024) * 1024;
  EXPECT_EQ(product.kernel.bytes_read.value(), operands / 2 + operands / 16);
  EXPECT_EQ(product.kernel.bytes_written.value(), 2 * kSequence * 1024);
  EXPECT_EQ(op_of(layer.forward, "mlp.router").kernel.precision, Precision::bf16);
}

TEST(Fp8, GroupedProductsOfExpertsAreInIt) {
  const Block layer = build_model_graph(mixture(), step_in(Precision::fp8)).blocks[1];
  for (const char* name : {"mlp.experts.up", "mlp.experts.down"}) {
    EXPECT_EQ(op_of(layer.forward, name).kernel.precision, Precision::fp8);
    for (const char* part : {".dgrad", ".wgrad"})
      EXPECT_EQ(op_of(layer.backward, std::string(name) + part).kernel.precision, Precision::fp8);
  }
  // Rows [2 * 1024, 1024] and all eight matrices, of one byte.
  const std::int64_t rows = 2 * kSequence;
  EXPECT_EQ(op_of(layer.forward, "mlp.experts.up").kernel.bytes_read.value(),
            rows * 1024 + 8LL * 1024 * 2 * 2816);
}

TEST(Fp8, OfLayersInBf16CastsNothing) {
  StepOptions step = step_in(Precision::fp8);
  step.framework.bf16_layers_last = 1;
  const ModelGraph graph = build_model_graph(mixture(), step);
  EXPECT_GT(named(graph.at(1).forward, ".fp8"), 0);
  EXPECT_EQ(graph.at(2).name, "bf16_layer");
  EXPECT_EQ(named(graph.at(2).forward, ".fp8"), 0);
}

/// Calls of the host for forward's product, the gradient of its input and that of its weights.
std::vector<int> calls_of_products(const StepOptions& step) {
  const Block layer = build_model_graph(mixture(), step).blocks[1];
  return {op_of(layer.forward, "mlp.experts.up").host_calls,
          op_of(layer.backward, "mlp.experts.up.dgrad").host_calls,
          op_of(layer.backward, "mlp.experts.up.wgrad").host_calls};
}

TEST(GroupedProducts, OfEachExpertTakeTheHostItsLaunchAndWhatTheLibraryDoesAroundIt) {
  StepOptions step = step_in(Precision::bf16);
  EXPECT_EQ(calls_of_products(step), (std::vector{1, 1, 1}));
  step.framework.products_per_expert = true;
  // 8 experts: a launch and a product's descriptors; of a weight's gradient three more (autograd's,
  // its accumulation, the hook).
  EXPECT_EQ(calls_of_products(step), (std::vector{8 * 2, 8 * 2, 8 * 5}));
}

TEST(GroupedProducts, InFp8TakeTheHostTwoQuantizedTensorsMore) {
  StepOptions step = step_in(Precision::fp8);
  step.framework.products_per_expert = true;
  EXPECT_EQ(calls_of_products(step), (std::vector{8 * 4, 8 * 4, 8 * 5}));
}

StepOptions engine_step(Fp8Scaling scaling) {
  StepOptions step = step_in(Precision::fp8);
  step.framework.transformer_engine = step.framework.products_per_expert = true;
  step.framework.fp8_scaling = scaling;
  return step;
}

TEST(Fp8, ScaledByTheirOwnLargestValueTheRowsOfEachExpertAreCastByKernelsOfTheirOwn) {
  const Block layer = build_model_graph(mixture(), engine_step(Fp8Scaling::current)).blocks[1];
  const std::string input = "mlp.experts.up.input";
  for (const char* kernel : {".largest.zero", ".largest", ".scale", ".fp8"}) {
    EXPECT_EQ(named(layer.forward, input + kernel), 8) << kernel;
    EXPECT_EQ(named(layer.forward, "mlp.experts.down.weight" + std::string(kernel)), 8) << kernel;
    EXPECT_EQ(named(layer.backward, "mlp.experts.up.output_grad" + std::string(kernel)), 8);
  }
  // 2 experts a token: an expert has 1024 * 2 / 8 rows of 1024 numbers, read in 16 bits beside
  // their largest value, written in both orders.
  const GraphOp& cast = op_of(layer.forward, input + ".fp8");
  EXPECT_EQ(cast.kernel.bytes_read.value(), 2 * 256 * 1024 + 4);
  EXPECT_EQ(cast.kernel.bytes_written.value(), 2 * 256 * 1024);
  EXPECT_EQ(cast.host_calls, 1);
  EXPECT_EQ(op_of(layer.forward, input + ".scale").host_calls, 0) << "within the same call";
}

TEST(Fp8, ScaledByBlocksEachExpertsRowsAreCastAloneAndByEarlierStepsAllAtOnce) {
  const Block blocks = build_model_graph(mixture(), engine_step(Fp8Scaling::mxfp8)).blocks[1];
  EXPECT_EQ(named(blocks.forward, "experts.up.input.fp8"), 8);
  EXPECT_EQ(named(blocks.forward, ".scale") + named(blocks.forward, ".largest"), 0);
  const Block earlier = build_model_graph(mixture(), engine_step(Fp8Scaling::delayed)).blocks[1];
  EXPECT_EQ(named(earlier.forward, "experts.up.input.fp8"), 1);
  EXPECT_EQ(op_of(earlier.forward, "mlp.experts.up.input.fp8").host_calls, 8);
}

/// Kernels that copy rows to multiples of what products want, and back.
std::int64_t padding_kernels(const StepOptions& step) {
  const Block layer = build_model_graph(mixture(), step).blocks[1];
  std::int64_t count = 0;
  for (const auto* ops : {&layer.forward, &layer.backward})
    for (const char* end : {".pad", ".unpad", ".pad.backward", ".unpad.backward"})
      count += named(*ops, "experts" + std::string(end));
  return count;
}

TEST(GroupedProducts, InFp8ReadRowsThatWerePaddedUnlessTheyCameInMultiples) {
  StepOptions step = engine_step(Fp8Scaling::current);
  EXPECT_EQ(padding_kernels(step), 4);
  const Block layer = build_model_graph(mixture(), step).blocks[1];
  // all rows, 2 for each of 1024 tokens, of 1024 numbers in 16 bits
  EXPECT_EQ(op_of(layer.forward, "mlp.experts.pad").kernel.bytes_read.value(), 2 * 1024 * 1024 * 2);
  step.expert_capacity_factor = 1;  // 1024 * 2 / 8 = 256 = 16 * 16 rows an expert
  EXPECT_EQ(padding_kernels(step), 0);
  step.expert_capacity_factor = 1.02;  // 261.1 rows, so 262
  EXPECT_EQ(padding_kernels(step), 4);
  step = step_in(Precision::bf16);
  step.framework.products_per_expert = true;
  EXPECT_EQ(padding_kernels(step), 0);
}

TEST(GroupedProducts, NeedNoPaddingWhereHybridEpPutsRowsAtMultiples) {
  StepOptions step = engine_step(Fp8Scaling::current);
  step.layout.data = step.layout.expert = 8;
  step.global_batch = 8;
  step.framework.expert_dispatcher = ExpertDispatcher::hybridep;
  EXPECT_EQ(padding_kernels(step), 0);
  step.framework.expert_dispatcher = ExpertDispatcher::deepep;
  EXPECT_EQ(padding_kernels(step), 4);
}

}  // namespace
}  // namespace tessera
