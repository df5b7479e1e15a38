// Rules of single operators: bytes per element, and what autograd adds between them.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/graph/tape.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

constexpr std::int64_t kTokens = 4096;
constexpr std::int64_t kHidden = 512;
constexpr std::int64_t kElements = kTokens * kHidden;

template <class Forward>
Block block_of(Forward forward) {
  Tape tape(TapeOptions{});
  const Tensor x = tape.block_input("x", {kTokens, kHidden});
  tape.output(forward(tape, x));
  return std::move(tape).finish("block");
}

std::int64_t moved(const std::vector<GraphOp>& ops) {
  return total(ops).bytes.value();
}

TEST(Autograd, SoftmaxBackwardMovesSixWords) {
  const Block block = block_of([](Tape& t, const Tensor& x) { return softmax(t, "softmax", x); });
  EXPECT_EQ(moved(block.forward), 8 * kElements);
  EXPECT_EQ(total(block.backward).kernels, 2);
  EXPECT_EQ(moved(block.backward), 24 * kElements);
}

TEST(Autograd, DropoutKeepsAByteOfMaskPerElement) {
  const Block block =
      block_of([](Tape& t, const Tensor& x) { return dropout(t, "dropout", x, 0.1); });
  EXPECT_EQ(moved(block.forward), 9 * kElements);
  EXPECT_EQ(moved(block.backward), 9 * kElements);
  EXPECT_EQ(block.saved.value(), kElements);
}

TEST(Autograd, NamesKeepTensorsUntilTheyAreDropped) {
  const auto frees_first = [](bool named) {
    const Block block = block_of([&](Tape& t, const Tensor& x) {
      return t.checkpoint({x}, [x, named](Tape& tape) {
        const Tensor first = tanh(tape, "first", x);
        const Tensor second = tanh(tape, "second", first);
        const Tensor third = tanh(tape, "third", second);
        if (named) tape.drop_names({first});
        return third;
      });
    });
    std::vector<std::size_t> frees;
    for (const GraphOp& op : block.forward) frees.push_back(op.frees.size());
    return frees;
  };
  EXPECT_EQ(frees_first(false), (std::vector<std::size_t>{0, 1, 1}));
  EXPECT_EQ(frees_first(true), (std::vector<std::size_t>{0, 0, 2}));
}

TEST(Autograd, DropoutOfProbabilityZeroDoesNothing) {
  const Block block = block_of(
      [](Tape& t, const Tensor& x) { return add_number(t, "after", dropout(t, "dropout", x, 0)); });
  EXPECT_EQ(total(block.forward).kernels, 1);
  EXPECT_EQ(total(block.backward).kernels, 0);
}

TEST(Autograd, GradientsThatMeetAreAddedByOneKernel) {
  const Block block =
      block_of([](Tape& t, const Tensor& x) { return add(t, "residual", x, tanh(t, "tanh", x)); });
  // tanh backward 12 bytes, join 12 bytes
  EXPECT_EQ(total(block.backward).kernels, 2);
  EXPECT_EQ(moved(block.backward), 24 * kElements);
}

TEST(Autograd, GeluNewRunsEightAndElevenKernels) {
  const Block block = block_of([](Tape& t, const Tensor& x) { return gelu_new(t, "gelu", x); });
  EXPECT_EQ(total(block.forward).kernels, 8);
  EXPECT_EQ(moved(block.forward), 72 * kElements);
  EXPECT_EQ(total(block.backward).kernels, 11);
  EXPECT_EQ(moved(block.backward), 112 * kElements);
  EXPECT_EQ(block.saved.value(), 16 * kElements);  // x, x / 2, tanh, 1 + tanh
}

TEST(Autograd, MaximumBackwardIsFiveKernels) {
  const Block block =
      block_of([](Tape& t, const Tensor& x) { return maximum_with_constant(t, "max", x); });
  EXPECT_EQ(total(block.backward).kernels, 5);
  // 9 words and 4 bytes per element, and three scalar reads of 4 bytes
  EXPECT_NEAR(static_cast<double>(moved(block.backward)), 40.0 * kElements, 64);
}

TEST(Autograd, ParameterUsedTwiceAccumulatesOnce) {
  const Block block = block_of([](Tape& t, const Tensor& x) {
    const Tensor weight = t.parameter("weight", {kHidden, kHidden});
    return linear_with(t, "second", linear_with(t, "first", x, weight), weight);
  });
  const auto accumulations =
      std::count_if(block.backward.begin(), block.backward.end(),
                    [](const GraphOp& op) { return op.accumulates_gradient; });
  EXPECT_EQ(accumulations, 1);
  EXPECT_EQ(total(block.backward).kernels, 4 + 1 + 1);  // products, join, accumulation
}

TEST(Autograd, EmbeddingGradientIsDense) {
  Tape tape(TapeOptions{});
  const Tensor table = tape.parameter("table", {50257, kHidden});
  const Tensor ids = tape.input("ids", {2, 512}, Precision::int64);
  tape.output(embedding(tape, "lookup", table, ids));
  const Block block = std::move(tape).finish("block");
  std::vector<std::string> names;
  for (const GraphOp& op : block.backward) names.push_back(op.name);
  EXPECT_THAT(names, ::testing::ElementsAre("lookup.zero", "lookup.scatter", "table.grad"));
  EXPECT_EQ(block.backward[0].kernel.bytes_written.value(), 4LL * 50257 * kHidden);
}

TEST(Autograd, LinearLayoutsFollowTheWeightsOrder) {
  const auto layouts = [](WeightOrder order) {
    const Block block = block_of(
        [&](Tape& t, const Tensor& x) { return linear(t, "linear", x, 256, Bias::none, order); });
    std::vector<GemmLayout> result;
    for (const auto* ops : {&block.forward, &block.backward}) {
      for (const GraphOp& op : *ops) {
        if (op.kernel.kind == KernelKind::gemm) result.push_back(op.kernel.layout);
      }
    }
    return result;
  };
  EXPECT_THAT(layouts(WeightOrder::out_in),
              ::testing::ElementsAre(GemmLayout::tn, GemmLayout::nn, GemmLayout::nt));
  EXPECT_THAT(layouts(WeightOrder::in_out),
              ::testing::ElementsAre(GemmLayout::nn, GemmLayout::tn, GemmLayout::nt));
}

TEST(Autograd, NothingIsRecordedWithoutGradients) {
  Tape tape(TapeOptions{Differentiation::none});
  const Tensor x = tape.block_input("x", {kTokens, kHidden});
  tape.output(gelu_new(tape, "gelu", x));
  const Block block = std::move(tape).finish("block");
  EXPECT_TRUE(block.backward.empty());
  EXPECT_EQ(block.saved.value(), 0);
}

}  // namespace
}  // namespace tessera
