#include "app/import/job/pipeline_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using ::testing::ElementsAre;

TEST(PipelineLayout, RepetitionsAreWrittenOut) {
  EXPECT_THAT(parse_pipeline_layout("Et*3|(tt|)*2,tL").layers, ElementsAre(3, 2, 2, 1));
  EXPECT_TRUE(parse_pipeline_layout("E|t|mL").predicts_more);
  EXPECT_FALSE(parse_pipeline_layout("E|t|mL").predicts_ahead);
  EXPECT_TRUE(parse_pipeline_layout("E|tm|L").predicts_ahead);
  EXPECT_TRUE(parse_pipeline_layout("Et*3|(tt|)*29m|L").predicts_ahead);  // DeepSeek-V3
  EXPECT_THAT(parse_pipeline_layout("Et|(t|)*2m|L").layers, ElementsAre(1, 1, 1, 0, 0));
  for (const char* broken : {"Et|(t", "Et|x|L", "tE|L", "EL|t", "Et*|L", "E(t*99999)*99999|L",
                             "Etm|tL", "Et|m|mL", "Etm||L"})
    EXPECT_FALSE(parse_pipeline_layout(broken).fault.empty()) << broken;
}

}  // namespace
}  // namespace tessera
