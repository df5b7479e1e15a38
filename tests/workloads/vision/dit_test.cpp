// Diffusion transformers against their published sizes, and a layer by hand.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/vision/vision_models.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using Architecture = VisionArchitecture;

// Of DiT-S/2, on latents of 32 x 32.
constexpr std::int64_t kHidden = 384, kHeads = 6, kPatches = 256, kImages = 2;

ModelSpec small() {
  return test::vision(Architecture::dit_s_2, "dit-s-2");
}

StepOptions step() {
  return test::single_gpu(test::hf_eager(), StepMode::training, kImages, 0);
}

const Block& block(const ModelGraph& graph, const std::string& name) {
  return *std::ranges::find_if(graph.blocks, [&](const Block& b) { return b.name == name; });
}

TEST(Dit, ExtraLargeHoldsThePublishedParametersWithItsPlaces) {
  // 675'129'632 are counted by the authors' code, 256 x 1152 places that nothing trains among them.
  EXPECT_EQ(parameter_count(test::vision(Architecture::dit_xl_2, "dit-xl-2")) + 256 * 1152,
            675'129'632);
}

TEST(Dit, ALayerConditionsSixVectorsAndHoldsEighteenSquares) {
  const ModelGraph graph = build_model_graph(small(), step());
  // Attention 4 h^2 + 4 h, feed-forward 8 h^2 + 5 h, six vectors of the condition 6 h^2 + 6 h.
  EXPECT_EQ(block(graph, "layer").parameters, 18 * kHidden * kHidden + 15 * kHidden);
}

TEST(Dit, ALayerMultipliesByHand) {
  const ModelGraph graph = build_model_graph(small(), step());
  const double linear = 2.0 * kImages * kPatches * 12 * kHidden * kHidden;
  const double attention = 2.0 * kImages * 2 * kPatches * kPatches * kHidden;
  const double condition = 2.0 * kImages * 6 * kHidden * kHidden;
  const Block& layer = block(graph, "layer");
  EXPECT_EQ(total(layer.forward).gemm_flops.value(), linear + attention + condition);
  EXPECT_EQ(total(layer.backward).gemm_flops.value(), 2 * (linear + attention + condition));
}

TEST(Dit, ALayerSavesTwentyWidthsPerPatch) {
  const ModelGraph graph = build_model_graph(small(), step());
  // Per patch: input and middle, what each norm gives and what it becomes (6); queries, keys and
  // values (3); merged heads and what attention gives (2); the wide layer twice (8); its result.
  // Per image: the condition behind its silu, six vectors, and two of them plus one. Softmax, and
  // two numbers per patch of each norm.
  const std::int64_t patches = kImages * kPatches;
  const std::int64_t scores = kImages * kHeads * kPatches * kPatches;
  EXPECT_EQ(block(graph, "layer").saved.value(),
            4 * (20 * patches * kHidden + scores + kImages * 9 * kHidden) + 2 * 8 * patches);
}

TEST(Dit, PatchesLieByChannelAndNormsCopyThemEachTime) {
  const Block layer = block(build_model_graph(small(), step()), "layer");
  const auto copies = [](const std::vector<GraphOp>& ops) {
    return std::ranges::count_if(ops, [](const GraphOp& op) {
      return op.kind == GraphOpKind::kernel && op.name.ends_with(".rows");
    });
  };
  EXPECT_EQ(copies(layer.forward), 2);
  EXPECT_EQ(copies(layer.backward), 2);
}

TEST(Dit, TheConditionIsMadeOnceAndItsGradientComesFromEveryLayer) {
  const ModelGraph graph = build_model_graph(small(), step());
  const auto joins = [](const Block& b) {
    return std::ranges::count_if(b.backward,
                                 [](const GraphOp& op) { return op.name == "condition.join"; });
  };
  EXPECT_EQ(joins(block(graph, "layer")), 1);
  EXPECT_EQ(joins(block(graph, "head")), 1);
  // Times of 256 waves, then h; a class more than there are.
  EXPECT_EQ(block(graph, "embedding").parameters,
            (4 * 4 + 1) * kHidden + (256 + 1) * kHidden + (kHidden + 1) * kHidden + 1001 * kHidden);
}

TEST(Dit, FullRecomputationKeepsTheInputAlone) {
  StepOptions again = step();
  again.recompute = Recompute::full;
  const Block layer = block(build_model_graph(small(), again), "layer");
  EXPECT_EQ(layer.saved.value(), 4 * kImages * kPatches * kHidden);
}

TEST(Dit, LargerLatentsHaveMorePatches) {
  ModelSpec model = test::vision(Architecture::dit_xl_2, "dit-xl-2");
  model.image_size = 64;  // 512 x 512: 524.6 billion multiply-adds (table 4 of the paper)
  StepOptions one = test::single_gpu(test::hf_eager(), StepMode::inference, 1, 0);
  EXPECT_NEAR(build_program(model, one).model_flops.value(), 2 * 524.6e9, 0.005 * 2 * 524.6e9);
  model.image_size = 33;
  EXPECT_THAT(test::refusal(model, one), ::testing::HasSubstr("use a multiple of 2"));
}

}  // namespace
}  // namespace tessera
