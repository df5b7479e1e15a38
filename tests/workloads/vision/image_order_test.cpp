#include <functional>

#include <gtest/gtest.h>

#include "tests/workloads/vision/vision_models.h"
#include "workloads/model_graph.h"
#include "workloads/ops/vision/convolution.h"

namespace tessera {
namespace {

constexpr std::int64_t kIn = 2 * 64 * 56 * 56;    // of two images
constexpr std::int64_t kOut = 2 * 128 * 56 * 56;  // after 128 filters

Block convolved(std::int32_t window, Precision precision, bool reorders, std::int32_t groups = 1) {
  TapeOptions options;
  options.precision = options.gemm_precision = precision;
  options.parameter_precision = options.gradient_precision = precision;
  options.reorders_images = reorders;
  Tape tape(options);
  const Tensor x = tape.block_input("x", {2, 64, 56, 56});
  const ConvolutionLayer layer{
      .out_channels = 128, .window = window, .padding = window / 2, .groups = groups};
  tape.output(conv2d(tape, "conv", x, layer));
  return std::move(tape).finish("block");
}

struct Copies {
  int kernels = 0;
  std::int64_t bytes = 0;

  bool operator==(const Copies&) const = default;
};

Copies copies_in(const std::vector<GraphOp>& ops) {
  Copies copies;
  for (const GraphOp& op : ops) {
    if (op.kind != GraphOpKind::kernel || op.kernel.kind != KernelKind::copy) continue;
    ++copies.kernels;
    copies.bytes += op.kernel.bytes().value();
  }
  return copies;
}

int host_calls(const std::vector<GraphOp>& ops) {
  int calls = 0;
  for (const GraphOp& op : ops) calls += op.host_calls;
  return calls;
}

TEST(ImageOrder, A16BitConvolutionReadsAndWritesItsThreeTensorsOnceMore) {
  const Block block = convolved(3, Precision::fp16, true);
  const std::int64_t elements = kIn + kOut + 128 * 64 * 9;  // filters too
  EXPECT_EQ(copies_in(block.forward), (Copies{3, 2 * 2 * elements}));
  EXPECT_EQ(copies_in(block.backward), (Copies{6, 2 * 2 * 2 * elements}));  // of both gradients
}

TEST(ImageOrder, ConvolutionsInTf32CopyWhatTheyReadAlone) {
  const Block block = convolved(3, Precision::tf32, true);
  EXPECT_EQ(copies_in(block.forward), (Copies{2, 2 * 4 * (kIn + 128 * 64 * 9)}));
  EXPECT_EQ(copies_in(block.backward).kernels, 4);
}

TEST(ImageOrder, TheLibrarysCopiesAreNoCallsOfTheHost) {
  const Block copied = convolved(3, Precision::bf16, true);
  const Block plain = convolved(3, Precision::bf16, false);
  EXPECT_EQ(host_calls(copied.forward), host_calls(plain.forward));
  EXPECT_EQ(host_calls(copied.backward), host_calls(plain.backward));
}

TEST(ImageOrder, AForwardProductOfSinglePixelsNeedsNoOtherOrder) {
  const Block block = convolved(1, Precision::fp16, true);
  EXPECT_EQ(copies_in(block.forward), Copies{});
  EXPECT_EQ(copies_in(block.backward).kernels, 6);
}

TEST(ImageOrder, KernelsOfGroupsTakeImagesAsTheyLie) {
  const Block block = convolved(3, Precision::fp16, true, 32);
  EXPECT_EQ(copies_in(block.forward), Copies{});
  EXPECT_EQ(copies_in(block.backward), Copies{});
}

TEST(ImageOrder, ChannelsLastAndFp32AreTakenAsTheyLie) {
  EXPECT_EQ(copies_in(convolved(3, Precision::fp32, true).forward), Copies{});
  EXPECT_EQ(copies_in(convolved(3, Precision::fp16, false).backward), Copies{});
}

TEST(ImageOrder, FollowsTheFramework) {
  const ModelSpec model = test::vision(VisionArchitecture::resnet50, "resnet-50");
  const auto copies = [&](const std::function<void(FrameworkProfile&)>& change) {
    StepOptions step;
    step.precision = Precision::fp16;
    step.micro_batch = 2;
    change(step.framework);
    int kernels = 0;
    for (const Block& block : build_model_graph(model, step).blocks)
      for (const GraphOp& op : block.forward) {
        if (op.name.ends_with(".reorder")) ++kernels;
      }
    return kernels;
  };
  EXPECT_GT(copies([](FrameworkProfile&) {}), 0);
  EXPECT_EQ(copies([](FrameworkProfile& f) { f.channels_last = true; }), 0);
  EXPECT_EQ(copies([](FrameworkProfile& f) { f.kernels = KernelMode::fused; }), 0);
}

}  // namespace
}  // namespace tessera
