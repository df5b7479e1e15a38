#include "sim/plan/memory/pipeline_time.h"

#include <gtest/gtest.h>

#include "tests/workloads/models.h"

namespace tessera {
namespace {

/// Three forward passes, then their backward passes.
RankProgram three_micro_batches() {
  RankProgram stage;
  for (const PassPart part : {PassPart::forward, PassPart::backward})
    for (std::int32_t micro_batch = 0; micro_batch < 3; ++micro_batch)
      stage.passes.push_back({.part = part, .micro_batch = micro_batch});
  return stage;
}

Seconds time_with(Seconds copies) {
  const StepOptions step = test::single_gpu(test::megatron(), StepMode::training, 3, 1024);
  ChunkTimes chunk;
  chunk.whole = {.times = {Seconds(16), Seconds(30), Seconds(0)},
                 .copies_out = {copies, Seconds(0), Seconds(0)}};
  return pipeline_time(step, {three_micro_batches()}, {{chunk}});
}

TEST(PipelineTime, CopiesThatKeepUpWithThePassesCostNothing) {
  EXPECT_DOUBLE_EQ(time_with(Seconds(0)).value(), 3 * 16 + 3 * 30);
  EXPECT_DOUBLE_EQ(time_with(Seconds(16)).value(), 3 * 16 + 3 * 30);
}

/// Each forward pass but the first waits 13 s for the link.
TEST(PipelineTime, ForwardPassesInARowWaitForALinkThatIsBehind) {
  EXPECT_DOUBLE_EQ(time_with(Seconds(29)).value(), 3 * 16 + 2 * 13 + 3 * 30);
}

}  // namespace
}  // namespace tessera
