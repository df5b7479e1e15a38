#include "lab/validate/resolved_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lab/validate/shipped_rows.h"
#include "tests/lab/validate/training_run_rows.h"

namespace tessera {
namespace {

using test::read;
using test::row;
using ::testing::HasSubstr;

std::vector<ResolvedRow> resolved(const std::string& rows) {
  return resolve_rows(read(rows), test::scenario_of);
}

TEST(ResolvedRows, RowsThatSimulateAlikeHaveOneHashWhateverTheyMeasured) {
  const auto rows = resolved(row("a", "NeMo", "bf16", "gpt", "none", "1", "1,,") +
                             row("b", "NeMo", "bf16", "gpt", "none", "1", "2,,") +
                             row("c", "NeMo", "fp16", "gpt", "none", "1", "1,,"));
  EXPECT_EQ(rows.at(0).hash, rows.at(1).hash);
  EXPECT_NE(rows.at(0).hash, rows.at(2).hash);
  EXPECT_THAT(rows.at(2).yaml, HasSubstr("precision: fp16"));
}

TEST(ResolvedRows, ThoseWithoutAScenarioSayWhy) {
  const auto rows = resolved(row("a", "x", "bf16", "gpt", "none", "1", "1,,") +
                             row("", "NeMo", "bf16", "cnn", "none", "1", "1,,"));
  const std::string lines = hash_lines(rows);
  EXPECT_THAT(lines, HasSubstr("a skipped: framework = 'x' stands for no profile"));
  EXPECT_THAT(lines, HasSubstr("line 3 skipped: model = small of family = cnn"));
  EXPECT_THAT(scenario_documents(rows), HasSubstr("# a\n# skipped: framework"));
}

}  // namespace
}  // namespace tessera
