#include "workloads/model_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/models.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

TEST(ModelGraph, TextShowsEveryKernelWithItsShapeAndMemory) {
  const StepOptions step = test::single_gpu(test::hf_eager(), StepMode::forward_backward, 4, 1024);
  const std::string text = to_text(build_model_graph(test::gpt2_large(), step));
  EXPECT_THAT(text, HasSubstr("layer (x 36): 19677440 parameters, 1352.729 MB saved for backward"));
  EXPECT_THAT(text, HasSubstr("forward: 30 kernels, 182.536 GFLOP in GEMMs"));
  EXPECT_THAT(text, HasSubstr("backward: 57 kernels"));
  EXPECT_THAT(text, HasSubstr("4096 x 3840 x 1280 nn + bias"));
  EXPECT_THAT(text, HasSubstr("80 * 1024 x 1024 x 64 nn"));
}

TEST(ModelGraph, TensorsKnowTheirRoles) {
  const StepOptions step = test::single_gpu(test::megatron_local(), StepMode::training, 2, 512);
  const ModelGraph graph = build_model_graph(test::gpt2_large(), step);
  std::map<TensorRole, std::int64_t> bytes;
  for (const Storage& storage : graph.blocks[1].storages) {
    bytes[storage.role] += storage.bytes.value();
  }
  EXPECT_EQ(bytes[TensorRole::parameter], 4 * graph.blocks[1].parameters);
  EXPECT_EQ(bytes[TensorRole::gradient], 4 * graph.blocks[1].parameters);
  EXPECT_EQ(bytes[TensorRole::saved_activation], graph.blocks[1].saved.value());
  EXPECT_GT(bytes[TensorRole::activation], 0);
  EXPECT_GT(bytes[TensorRole::temporary], 0);
}

TEST(ModelGraph, SavedBytesShrinkWithTensorParallelismExceptWhatIsReplicated) {
  // N (18 + 48 / t) + 9 A / t, and the statistics of two norms
  constexpr std::int64_t kN = 2 * 1024 * 1280;
  constexpr std::int64_t kA = 2 * 20 * 1024 * 1024;
  for (const int tensor : {1, 2, 4}) {
    StepOptions step = test::single_gpu(test::megatron_local(), StepMode::training, 2, 1024);
    step.layout.tensor = tensor;
    const ModelGraph graph = build_model_graph(test::gpt2_large(), step);
    EXPECT_EQ(graph.blocks[1].saved.value(),
              18 * kN + 48 * kN / tensor + 9 * kA / tensor + 2 * 8 * 2 * 1024);
  }
}

}  // namespace
}  // namespace tessera
