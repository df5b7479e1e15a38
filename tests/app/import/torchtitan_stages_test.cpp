#include "app/import/job/torchtitan/torchtitan_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::torchtitan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TorchtitanStages, EmbeddingAndHeadCountAsALayerEach) {
  // Llama 3.1 405B: 126 layers and two are 16 for each of eight stages.
  EXPECT_THAT(layers_of_stages(126, 8), ElementsAre(15, 16, 16, 16, 16, 16, 16, 15));
  // 70B: 82 are 20 for each of four, and one more for the first two.
  EXPECT_THAT(layers_of_stages(80, 4), ElementsAre(20, 21, 20, 19));
  EXPECT_THAT(layers_of_stages(2, 8), IsEmpty());  // nothing for the head's stage to give up
}

TEST(TorchtitanStages, In2024WhatDidNotDivideWentToTheMiddle) {
  EXPECT_THAT(layers_of_stages_2024(80, 4), ElementsAre(20, 20, 20, 20));
  EXPECT_THAT(layers_of_stages_2024(126, 8), ElementsAre(15, 16, 16, 16, 16, 16, 16, 15));
  EXPECT_THAT(layers_of_stages_2024(10, 4), ElementsAre(2, 3, 3, 2));
  EXPECT_THAT(layers_of_stages_2024(11, 4), ElementsAre(2, 3, 3, 3));
}

}  // namespace
}  // namespace tessera::torchtitan
