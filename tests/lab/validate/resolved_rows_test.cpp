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
  const auto settings_of = [](const TrainingRun& run) {
    return settings_of_training_run(run, framework_aliases(test::shipped_configs()),
                                    test::shipped_configs());
  };
  return resolve_rows(read(rows), {settings_of, test::scenario_of});
}

TEST(ResolvedRows, RowsThatSimulateAlikeHaveOneHashWhateverTheyMeasured) {
  const auto rows = resolved(row("a", "NeMo", "bf16", "gpt", "none", "1", "1,,") +
                             row("b", "NeMo", "bf16", "gpt", "none", "1", "2,,") +
                             row("c", "NeMo", "fp16", "gpt", "none", "1", "1,,"));
  EXPECT_EQ(rows.at(0).hash, rows.at(1).hash);
  EXPECT_NE(rows.at(0).hash, rows.at(2).hash);
  EXPECT_THAT(rows.at(2).yaml, HasSubstr("precision: fp16"));
}

TEST(ResolvedRows, AreSettingsAndWhatWasMeasured) {
  const std::string lines =
      setting_lines(resolved(row("a", "NeMo", "bf16", "gpt", "full", "1", "0.25,31.5,allocated")));
  EXPECT_EQ(lines.substr(0, lines.find('\n')), "# a step_time_s=0.25 peak_memory_GiB=31.5");
  EXPECT_THAT(lines, HasSubstr("\ntraining.recompute=full\n"));
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
