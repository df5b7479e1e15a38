#include "workloads/graph/strided_loop.h"

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/families/families.h"

namespace tessera {
namespace {

constexpr std::int64_t kFloat = 4;

using Order = std::vector<std::size_t>;

/// A position bias [1, heads, s, s] whose heads lie innermost: values[s, s, heads].permute(2, 0,
/// 1).
StridedShape heads_innermost(std::int64_t heads, std::int64_t s) {
  return {{1, heads, s, s}, {heads, 1, s * heads, heads}};
}

TEST(LoopOrder, IsThatOfARowMajorTensor) {
  EXPECT_EQ(loop_order({StridedShape({2, 4, 16, 8})}), (Order{3, 2, 1, 0}));
}

TEST(LoopOrder, TheFirstOperandLeadsAndBroadcastDimensionsAskTheNext) {
  const Sizes sizes{2, 4, 16, 16};
  const StridedShape bias = broadcast_to(heads_innermost(4, 16), sizes);  // batch stride 0
  const StridedShape mask = broadcast_to(StridedShape({2, 1, 16, 16}), sizes);
  EXPECT_EQ(loop_order({bias, mask}), (Order{1, 3, 2, 0}));
  EXPECT_EQ(loop_order({StridedShape(sizes), bias}), (Order{3, 2, 1, 0}));
}

TEST(PointwiseOutput, HasTheStridesThatPyTorchGives) {
  // values.permute(2, 0, 1).unsqueeze(0) + mask in PyTorch 1.13, b = 2, heads = 4, s = 16:
  // stride() = (1024, 1, 64, 4)
  const Sizes sizes{2, 4, 16, 16};
  for (const Sizes& mask : {Sizes{2, 1, 16, 16}, Sizes{2, 1, 1, 16}}) {
    const StridedShape sum = pointwise_output(
        {broadcast_to(heads_innermost(4, 16), sizes), broadcast_to(StridedShape(mask), sizes)});
    EXPECT_EQ(sum.strides(), (Sizes{1024, 1, 64, 4}));
  }
}

/// Two operands and their sum, as PyTorch 1.13 strides it.
struct ExecutedAddition {
  Sizes a, a_strides, b, b_strides, sum, sum_strides;
};

TEST(PointwiseOutput, AgreesWithPyTorchOnDrawnOperands) {
  const std::vector<ExecutedAddition> executed{
      {{2, 1, 2, 3}, {6, 3, 3, 1}, {2, 5, 1, 3}, {3, 6, 6, 1}, {2, 5, 2, 3}, {6, 12, 3, 1}},
      {{2, 1, 2, 5}, {1, 1, 2, 4}, {2, 2, 2, 5}, {5, 20, 10, 1}, {2, 2, 2, 5}, {1, 20, 2, 4}},
      {{1, 2, 3, 5}, {2, 1, 2, 6}, {3, 2, 1, 1}, {1, 3, 6, 6}, {3, 2, 3, 5}, {1, 45, 3, 9}},
      {{5, 2, 3, 2}, {12, 3, 1, 6}, {1, 1, 3, 2}, {1, 1, 1, 3}, {5, 2, 3, 2}, {12, 3, 1, 6}},
      {{2, 3, 5, 5}, {1, 50, 2, 10}, {1, 1, 5, 1}, {5, 5, 1, 5}, {2, 3, 5, 5}, {1, 50, 2, 10}},
      {{1, 5, 1, 5}, {1, 5, 25, 1}, {5, 5, 1, 5}, {5, 25, 125, 1}, {5, 5, 1, 5}, {5, 25, 125, 1}},
      {{5, 2, 5, 1}, {10, 5, 1, 5}, {1, 2, 1, 5}, {1, 5, 1, 1}, {5, 2, 5, 5}, {50, 25, 5, 1}},
      {{3, 3, 2, 2}, {12, 4, 2, 1}, {3, 3, 2, 2}, {6, 2, 1, 18}, {3, 3, 2, 2}, {12, 4, 2, 1}},
      {{1, 5, 1, 2}, {5, 1, 5, 5}, {3, 5, 1, 2}, {2, 6, 6, 1}, {3, 5, 1, 2}, {10, 1, 5, 5}},
      {{5, 5, 3, 1}, {5, 1, 25, 25}, {1, 5, 1, 5}, {25, 1, 25, 5}, {5, 5, 3, 5}, {25, 1, 125, 5}},
      {{5, 1, 1, 3}, {1, 1, 5, 5}, {5, 2, 5, 3}, {30, 3, 6, 1}, {5, 2, 5, 3}, {30, 3, 6, 1}},
      {{5, 3, 2, 3}, {6, 2, 1, 30}, {1, 1, 2, 3}, {1, 1, 1, 2}, {5, 3, 2, 3}, {6, 2, 1, 30}},
  };
  for (const ExecutedAddition& e : executed) {
    const StridedShape sum = pointwise_output(
        {broadcast_to({e.a, e.a_strides}, e.sum), broadcast_to({e.b, e.b_strides}, e.sum)});
    EXPECT_EQ(sum.strides(), e.sum_strides) << ::testing::PrintToString(e.a_strides);
  }
}

TEST(OperandReuse, RowMajorOperandsAreReadOnce) {
  const StridedShape x({2, 4, 512, 512});
  EXPECT_EQ(operand_reuse(x, loop_order({x}), kFloat).refetched.value(), 0);
}

TEST(OperandReuse, AMaskIsReadAgainByEveryOtherHead) {
  const StridedShape scores({2, 32, 512, 512});
  const StridedShape mask = broadcast_to(StridedShape({2, 1, 512, 512}), scores.sizes());
  const OperandReuse reuse = operand_reuse(mask, loop_order({scores, mask}), kFloat);
  EXPECT_EQ(reuse.footprint.value(), 512 * 512 * 4);             // of one sequence
  EXPECT_EQ(reuse.refetched.value(), 2 * 31 * (512 * 512 * 4));  // 31 of 32 heads, 2 sequences
}

TEST(OperandReuse, ARowMaskNeedsNoMoreThanARowOfCache) {
  const StridedShape scores({8, 16, 512, 512});
  const StridedShape mask = broadcast_to(StridedShape({8, 1, 1, 512}), scores.sizes());
  EXPECT_EQ(operand_reuse(mask, loop_order({scores, mask}), kFloat).footprint.value(), 512 * 4);
}

TEST(OperandReuse, InnermostHeadsWasteSevenEighthsOfEverySector) {
  const StridedShape scores({1, 32, 512, 512});
  const StridedShape bias = heads_innermost(32, 512);
  const OperandReuse reuse = operand_reuse(bias, loop_order({scores, bias}), kFloat);
  // a head's keys lie 128 bytes apart: a sector of 32 bytes each, of which 8 heads use 4
  EXPECT_EQ(reuse.footprint.value(), 512 * 512 * 32);
  EXPECT_EQ(reuse.refetched.value(), 32LL * 512 * 512 * (32 - 4));
}

TEST(OperandReuse, ANumberStaysInARegister) {
  const Sizes sizes{4, 1024};
  const StridedShape number = broadcast_to(StridedShape({1}), sizes);
  const OperandReuse reuse =
      operand_reuse(number, loop_order({StridedShape(sizes), number}), kFloat);
  EXPECT_EQ(reuse.refetched.value(), 0);
}

/// The forward operator of that name.
const GraphOp& find(const Block& block, const std::string& name) {
  for (const GraphOp& op : block.forward) {
    if (op.name == name && op.kind == GraphOpKind::kernel) return op;
  }
  throw std::out_of_range(name);
}

TEST(StridedKernels, OnlyOperandsOutOfOrderTakeTheStridedOne) {
  const StepOptions step = test::single_gpu(test::hf_eager(), StepMode::inference, 2, 2048);
  const Block layer = opt_blocks(test::opt_1_3b(), step).blocks[1];
  const Kernel& mask = find(layer, "attention.mask_add").kernel;
  EXPECT_EQ(mask.kind, KernelKind::copy);
  EXPECT_EQ(mask.reuse_footprint.value(), 2048LL * 2048 * 4);
  const Kernel& maximum = find(layer, "attention.max").kernel;  // against a 0-d tensor
  EXPECT_EQ(maximum.kind, KernelKind::elementwise);
  EXPECT_EQ(maximum.bytes_refetched.value(), 0);
}

TEST(StridedKernels, OptMakesItsPaddingMaskFromARow) {
  const StepOptions step = test::single_gpu(test::hf_eager(), StepMode::inference, 2, 2048);
  const Kernel sub = find(opt_blocks(test::opt_1_3b(), step).blocks[0], "mask.sub").kernel;
  EXPECT_EQ(sub.bytes_read.value(), 2 * 2048 * 4);              // [b, 1, 1, s]
  EXPECT_EQ(sub.bytes_written.value(), 2LL * 2048 * 2048 * 4);  // [b, 1, s, s]
}

TEST(SoftmaxKernels, RowsThatExceedSharedMemoryAreReadOncePerPass) {
  StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 4, 1024);
  step.framework.shifts_labels = false;
  const ModelGraph graph = gpt2_blocks(test::gpt2_large(), step);
  const std::int64_t logits = 4096LL * 50257 * 4;  // a row is 201 KB
  const Kernel loss = find(graph.blocks[2], "loss.log_softmax").kernel;
  EXPECT_EQ(loss.bytes_refetched.value(), 2 * logits);  // maximum, sum, result: three reads
  EXPECT_EQ(loss.bytes().value(), 2 * logits);          // of which one counts always
  EXPECT_EQ(find(graph.blocks[1], "attention.softmax").kernel.bytes_refetched.value(), 0);
  for (const GraphOp& op : graph.blocks[2].backward) {
    if (op.name != "loss.log_softmax.backward") continue;
    EXPECT_EQ(op.kernel.bytes_refetched.value(), logits);
    return;
  }
  FAIL() << "no backward";
}

TEST(BackwardOperators, NameTheForwardOperatorThatTheyDifferentiate) {
  const StepOptions step = test::single_gpu(test::hf_eager(), StepMode::forward_backward, 4, 1024);
  const Block layer = gpt2_blocks(test::gpt2_large(), step).blocks[1];
  const auto origin = [&](const std::string& name) {
    for (const GraphOp& op : layer.backward) {
      if (op.name == name) return op.origin;
    }
    return -2;
  };
  const auto forward_name = [&](const std::string& name) {
    const int index = origin(name);
    return index < 0 ? std::string() : layer.forward[static_cast<std::size_t>(index)].name;
  };
  EXPECT_EQ(forward_name("mlp.up.wgrad"), "mlp.up");
  EXPECT_EQ(forward_name("mlp.up.weight.grad"), "mlp.up");
  EXPECT_EQ(forward_name("attention.softmax.backward"), "attention.softmax");
  EXPECT_EQ(forward_name("ln_2.gamma_beta"), "ln_2");
  EXPECT_EQ(origin("hidden.join"), -1);  // two gradients meet
}

}  // namespace
}  // namespace tessera
