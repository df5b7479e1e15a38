// Whole image models against published parameter counts and FLOPs, and saved activations by hand.
#include "tests/workloads/vision/vision_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

using test::single_gpu;
using test::vision;
using Architecture = VisionArchitecture;

struct Published {
  Architecture architecture;
  const char* name;
  std::int64_t parameters;
  double giga_macs;  ///< of one image; 0: not published
};

// torchvision's table of weights (parameters, GFLOPS = multiply-adds); GoogLeNet without auxiliary
// classifiers; Inception-v4: timm; U-Net: 31'037'633 of milesial/Pytorch-UNet for one class and 65
// for another. ResNeXt-101 32x4d and SE-ResNeXt-101: timm's 44.18 M and 48.96 M, counted below;
// 8.0 GMAC: Xie et al. 2017. CaiT: the paper's 12.0 and 46.9 M. By hand for S24, width h = 384, 8
// heads: 24 layers of 12 h^2 + 15 h + 2 (64 + 8), 2 class layers of 12 h^2 + 15 h, and (768 + 1 +
// 196 + 1 + 2) h + 1000 (h + 1) around them. DiT: the paper's 33, 130, 458 and 675 M and its table
// 4; by hand layers of 18 h^2 + 15 h, and 3 h^2 + (17 + 257 + 1 + 1001 + 2 + 32) h + 32 around
// them.
constexpr Published kPublished[] = {
    {Architecture::resnet50, "resnet50", 25'557'032, 4.09},
    {Architecture::resnet101, "resnet101", 44'549'160, 7.80},
    {Architecture::resnext50_32x4d, "resnext50", 25'028'904, 4.23},
    {Architecture::resnext101_32x4d, "resnext101", 44'177'704, 8.0},
    {Architecture::se_resnext101_32x4d, "se_resnext101", 48'955'416, 8.0},
    {Architecture::vgg16, "vgg16", 138'357'544, 15.47},
    {Architecture::densenet121, "densenet121", 7'978'856, 2.83},
    {Architecture::googlenet, "googlenet", 6'624'904, 1.50},
    {Architecture::inception_v4, "inception_v4", 42'679'816, 12.25},
    {Architecture::unet, "unet", 31'037'698, 0},
    {Architecture::vit_b_16, "vit_b_16", 86'567'656, 17.56},
    {Architecture::vit_l_16, "vit_l_16", 304'326'632, 61.55},
    {Architecture::cait_xxs24, "cait_xxs24", 11'956'264, 2.53},
    {Architecture::cait_s24, "cait_s24", 46'916'200, 9.35},
    {Architecture::dit_s_2, "dit_s_2", 32'865'056, 6.06},
    {Architecture::dit_b_2, "dit_b_2", 130'315'808, 23.01},
    {Architecture::dit_l_2, "dit_l_2", 457'840'672, 80.71},
    {Architecture::dit_xl_2, "dit_xl_2", 674'834'720, 118.64}};

ModelGraph inference(const ModelSpec& model) {
  return build_model_graph(model, single_gpu(test::hf_eager(), StepMode::inference, 1, 0));
}

StepOptions images(std::int64_t batch) {
  return single_gpu(test::hf_eager(), StepMode::training, batch, 0);
}

double forward_flops(const ModelGraph& graph) {
  double flops = 0;
  for (int i = 0; i < static_cast<int>(graph.order.size()); ++i)
    flops += total(graph.at(i).forward).gemm_flops.value();
  return flops;
}

TEST(VisionModels, HoldThePublishedParameters) {
  for (const Published& p : kPublished)
    EXPECT_EQ(parameter_count(vision(p.architecture, p.name)), p.parameters) << p.name;
}

/// ResNeXt-101 32x4d by hand, with what `squeeze(channels)` adds to each bottleneck.
template <class Squeeze>
std::int64_t resnext101_parameters(const Squeeze& squeeze) {
  std::int64_t sum = 3 * 64 * 49 + 2 * 64 + 2048 * 1000 + 1000;  // stem and classifier
  std::int64_t in = 64, width = 128;
  for (const int depth : {3, 4, 23, 3}) {
    const std::int64_t out = 2 * width;
    sum += in * out + 2 * out;  // the projection of the first shortcut
    for (int i = 0; i < depth; ++i) {
      sum += in * width + width * (width / 32) * 9 + width * out;  // 1x1, 3x3 in groups, 1x1
      sum += 2 * (width + width + out) + squeeze(out);             // norms
      in = out;
    }
    width *= 2;
  }
  return sum;
}

TEST(VisionModels, ResNextHoldsFiltersForThirtyTwoGroups) {
  EXPECT_EQ(parameter_count(vision(Architecture::resnext101_32x4d, "resnext101")),
            resnext101_parameters([](std::int64_t) { return 0; }));
  EXPECT_EQ(parameter_count(vision(Architecture::se_resnext101_32x4d, "se_resnext101")),
            resnext101_parameters([](std::int64_t c) { return 2 * c * (c / 16) + c / 16 + c; }));
}

TEST(VisionModels, DoThePublishedArithmetic) {
  for (const Published& p : kPublished) {
    if (p.giga_macs == 0) continue;
    const double macs = forward_flops(inference(vision(p.architecture, p.name))) / 2e9;
    EXPECT_NEAR(macs, p.giga_macs, 0.011 * p.giga_macs) << p.name;
  }
}

TEST(VisionModels, BackwardDoesTwiceTheForwardArithmeticWithoutTheImagesGradient) {
  const ModelSpec model = vision(Architecture::resnet50, "resnet50");
  const ModelGraph graph = build_model_graph(model, images(1));
  double backward = 0;
  for (int i = 0; i < static_cast<int>(graph.order.size()); ++i)
    backward += total(graph.at(i).backward).gemm_flops.value();
  const double stem = 2.0 * 112 * 112 * 64 * 3 * 49;
  EXPECT_DOUBLE_EQ(backward, 2 * forward_flops(graph) - stem);
}

const Block& block_called(const ModelGraph& graph, const std::string& name) {
  return *std::ranges::find_if(graph.blocks, [&](const Block& b) { return b.name == name; });
}

TEST(VisionModels, AResNetBottleneckSavesTwelveWidthsPerPixel) {
  // Per pixel of 56x56: the input 4w, conv1's and conv2's outputs w each (saved by the norms),
  // their ReLUs' outputs w each, conv3's output 4w; the sum 4w is the next block's. w = 64, 4
  // bytes.
  const ModelGraph graph = build_model_graph(vision(Architecture::resnet50, "resnet50"), images(2));
  const std::int64_t pixels = 2 * 56 * 56;
  const std::int64_t statistics = 8 * (64 + 64 + 256);
  const Block& block = block_called(graph, "layer1");
  EXPECT_EQ(block.saved.value(), 4 * 12 * 64 * pixels + statistics);
  // three norms of two kernels, three convolutions, three ReLUs, one addition
  EXPECT_EQ(total(block.forward).kernels, 3 * 2 + 3 + 3 + 1);
}

TEST(VisionModels, AResNextBottleneckSavesSixteenWidthsPerPixelAndItsSqueezeFourMore) {
  // As above with twice the width w = 64 inside: 4w of the input, 2w of two convolutions and of two
  // ReLUs, 4w of the third convolution. Squeezed, the third norm's output 4w as well, and per image
  // the means (256), the narrow layer's output (16) and the factors (256).
  const auto saved = [](Architecture architecture) {
    const ModelGraph graph = build_model_graph(vision(architecture, "resnext"), images(2));
    return block_called(graph, "layer1").saved.value();
  };
  const std::int64_t pixels = 2 * 56 * 56;
  const std::int64_t plain = 4 * 16 * 64 * pixels + 8 * (128 + 128 + 256);
  EXPECT_EQ(saved(Architecture::resnext101_32x4d), plain);
  EXPECT_EQ(saved(Architecture::se_resnext101_32x4d),
            plain + 4 * 4 * 64 * pixels + 4 * 2 * (256 + 16 + 256));
}

TEST(VisionModels, EveryResNetBlockReturnsWhatItAllocates) {
  for (const Published& p : kPublished) {
    const ModelGraph graph = build_model_graph(vision(p.architecture, p.name), images(1));
    Bytes in_use;
    for (int i = 0; i < static_cast<int>(graph.order.size()); ++i)
      for (const GraphOp& op : graph.at(i).forward) in_use += op.allocated - op.freed;
    EXPECT_GT(in_use.value(), 0) << p.name;
    for (int i = static_cast<int>(graph.order.size()); i-- > 0;)
      for (const GraphOp& op : graph.at(i).backward) in_use += op.allocated - op.freed;
    EXPECT_EQ(in_use.value(), 0) << p.name;
  }
}

TEST(VisionModels, RecomputationKeepsLessAndRunsTheForwardArithmeticAgain) {
  for (const Published& p : kPublished) {
    StepOptions step = images(1);
    const ModelSpec model = vision(p.architecture, p.name);
    const ModelGraph kept = build_model_graph(model, step);
    step.recompute = Recompute::full;
    const ModelGraph again = build_model_graph(model, step);
    const auto saved = [](const ModelGraph& graph) {
      Bytes sum;
      for (int i = 0; i < static_cast<int>(graph.order.size()); ++i) sum += graph.at(i).saved;
      return static_cast<double>(sum.value());
    };
    EXPECT_LT(saved(again), 0.9 * saved(kept)) << p.name;
    double repeated = 0;
    for (const Block& block : again.blocks)
      for (const GraphOp& op : block.backward)
        if (op.recomputed && counts_as_model_flops(op.kernel)) repeated += op.kernel.flops.value();
    EXPECT_GT(repeated, 0) << p.name;
    EXPECT_EQ(again.parameters(), kept.parameters()) << p.name;
  }
}

TEST(VisionModels, AreNotSplitOverGpus) {
  const auto problems = [](auto change) {
    StepOptions step = images(2);
    change(step);
    std::vector<std::string> where;
    for (const Problem& problem : test::problems_of(vision(Architecture::vgg16, "vgg16"), step))
      where.push_back(problem.where);
    return where;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(problems([](StepOptions& s) { s.layout.tensor = 2; }),
              ElementsAre("parallelism.tensor"));
  EXPECT_THAT(problems([](StepOptions& s) { s.layout.pipeline = 2; }),
              ElementsAre("parallelism.pipeline"));
  EXPECT_THAT(
      problems([](StepOptions& s) { s.layout.data = 2, s.global_batch = 2, s.micro_batch = 1; }),
      ElementsAre());
  EXPECT_THAT(problems([](StepOptions& s) { s.framework = test::megatron_local(); }),
              ElementsAre("training.framework"));
  EXPECT_THAT(problems([](StepOptions& s) { s.recompute = Recompute::selective; }),
              ElementsAre("training.recompute"));
}

TEST(VisionModels, RefuseImagesThatTheyCannotRead) {
  ModelSpec model = vision(Architecture::unet, "unet");
  model.image_size = 100;
  EXPECT_NE(test::refusal(model, images(1)), "");
  model = vision(Architecture::resnet50, "resnet50");
  model.image_size = 31;
  EXPECT_NE(test::refusal(model, images(1)), "");
}

TEST(VisionModels, TheImagesAreCountedAsMemory) {
  const auto buffers = [](std::int64_t batch) {
    return build_model_graph(vision(Architecture::vgg16, "vgg16"), images(batch))
        .blocks[0]
        .buffers.value();
  };
  EXPECT_EQ(buffers(3) - buffers(2), 4 * 3 * 224 * 224);
}

TEST(VisionModels, SgdWithMomentumKeepsOneState) {
  StepOptions step = images(1);
  step.optimizer = OptimizerKind::sgd;
  const Program sgd = build_program(vision(Architecture::resnet50, "resnet50"), step);
  step.optimizer = OptimizerKind::adam;
  const Program adam = build_program(vision(Architecture::resnet50, "resnet50"), step);
  EXPECT_EQ((adam.stages[0].static_memory - sgd.stages[0].static_memory).value(), 4 * 25'557'032);
  EXPECT_EQ(sgd.sequences_per_step, 1);
}

}  // namespace
}  // namespace tessera
