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

}  // namespace
}  // namespace tessera
