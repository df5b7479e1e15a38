#include "workloads/parallel/split_backward.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

using ::testing::IsSubsetOf;

const Block& layer_of(const ModelGraph& graph) {
  return graph.at(1);
}

std::vector<std::string> products(const std::vector<GraphOp>& ops) {
  std::vector<std::string> names;
  for (const GraphOp& op : ops) {
    if (op.kind == GraphOpKind::kernel && counts_as_model_flops(op.kernel))
      names.push_back(op.name);
  }
  return names;
}

std::int64_t net(const std::vector<GraphOp>& ops) {
  std::int64_t sum = 0;
  for (const GraphOp& op : ops) sum += (op.allocated - op.freed).value();
  return sum;
}

StepOptions training(const FrameworkProfile& profile) {
  return test::single_gpu(profile, StepMode::training, 2, 256);
}

TEST(SplitBackward, DefersTheFourWeightGradientsOfALayer) {
  const ModelGraph graph = build_model_graph(test::gpt2_large(), training(test::megatron_local()));
  const SplitBackward split = split_backward(layer_of(graph));
  // and a kernel that adds each to its gradient buffer
  EXPECT_EQ(products(split.weight_gradient).size(), 4u);
  EXPECT_EQ(total(split.weight_gradient).kernels, 8);
  EXPECT_EQ(products(split.input_gradient).size(), 8u);  // 4 linear, 4 of attention
}

TEST(SplitBackward, KeepsEveryOperator) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    StepOptions step = training(test::megatron_local());
    step.recompute = recompute;
    step.layout.tensor = 2;
    const ModelGraph graph = build_model_graph(test::gpt2_large(), step);
    for (const Block& block : graph.blocks) {
      const SplitBackward split = split_backward(block);
      EXPECT_EQ(split.input_gradient.size() + split.weight_gradient.size(), block.backward.size());
      EXPECT_EQ(total(split.input_gradient).kernels + total(split.weight_gradient).kernels,
                total(block.backward).kernels);
      EXPECT_EQ(net(split.input_gradient) + net(split.weight_gradient), net(block.backward));
      for (const GraphOp& op : split.weight_gradient) EXPECT_FALSE(op.recomputed) << op.name;
    }
  }
}

TEST(SplitBackward, NothingReadsWhatComesLater) {
  for (const FrameworkProfile& profile : {test::megatron_local(), test::megatron()}) {
    for (const ModelSpec& model : {test::gpt2_large(), test::llama2_7b()}) {
      const ModelGraph graph =
          build_model_graph(model, test::in(Precision::bf16, training(profile)));
      for (const Block& block : graph.blocks) {
        const SplitBackward split = split_backward(block);
        std::set<int> late;  // temporaries
        for (const GraphOp& op : split.weight_gradient) {
          for (const Access& access : op.writes) {
            if (block.storage(access.storage).scope != StorageScope::persistent)
              late.insert(access.storage.index());
          }
        }
        for (const GraphOp& op : split.input_gradient) {
          for (const Access& access : op.reads) {
            EXPECT_FALSE(late.contains(access.storage.index())) << op.name;
          }
        }
      }
    }
  }
}

TEST(SplitBackward, LeavesTheOperandsOfDeferredProductsInMemory) {
  const ModelGraph graph = build_model_graph(test::gpt2_large(), training(test::megatron_local()));
  const Block& layer = layer_of(graph);
  // saved inputs of the four linears (h, h, h and f wide) and the gradients of their outputs
  // (3h, h, f and h wide): (3 + 4 + 3 + 1 + 4 + 1) h = 16 h per token; the gradient of the layer's
  // input is h more
  const std::int64_t n = 2 * 256 * 1280 * 4;
  const std::int64_t freed_late = -net(split_backward(layer).weight_gradient);
  EXPECT_EQ(freed_late, 16 * n);
}

}  // namespace
}  // namespace tessera
