#include "lab/validate/longrun/published_runs.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/validate/power/node_power.h"
#include "predictor/weights/weights.h"
#include "tests/hw/units/measurements.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kSources(TESSERA_SOURCE_DIR);

std::filesystem::path measured(const char* name) {
  return measurements_folder() / name;
}

LongRunScore score_in(bool points, double measured, double predicted, bool more_than = false) {
  return {
      .title = "figure",
      .limit = 3,
      .in_points = points,
      .figures = {
          {.what = "run", .measured = measured, .predicted = predicted, .more_than = more_than}}};
}

TEST(PublishedRuns, AreHeldToPointsOrPercent) {
  const LongRunScore points = score_in(true, 50, 52.5), percent = score_in(false, 50, 52.5);
  EXPECT_DOUBLE_EQ(points.off(points.figures[0]), 2.5);
  EXPECT_TRUE(points.is_met(points.figures[0]));
  EXPECT_NEAR(percent.off(percent.figures[0]), 5, 1e-12);
  EXPECT_FALSE(percent.is_met(percent.figures[0]));
}

TEST(PublishedRuns, WhatIsNotScoredSaysWhy) {
  LongRunScore score = score_in(true, 50, 52.5, true);
  score.figures.push_back({.what = "another", .skipped = "nobody knows its size"});
  const std::string text = long_run_table({score, score_in(false, 50, 52.5)});
  EXPECT_THAT(text,
              HasSubstr("run                                >       50      52.5    +2.50 points"));
  EXPECT_THAT(text, HasSubstr("not scored: another\n    nobody knows its size"));
  EXPECT_THAT(text, HasSubstr("missed"));
}

TEST(PublishedRuns, AreWithinTheirLimits) {
  const auto folder = measured("failures");
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "TESSERA_MEASUREMENTS has no folder failures";
  const auto scores = score_long_runs(folder, Catalog(kSources / "configs"),
                                      load_weights(kSources / "predictor/weights/tessera.pb"));
  ASSERT_EQ(scores.size(), 4u);
  for (const LongRunScore& score : scores) {
    int scored = 0;
    for (const LongRunFigure& figure : score.figures) {
      if (!figure.skipped.empty()) continue;
      ++scored;
      EXPECT_TRUE(score.is_met(figure)) << score.title << ", " << figure.what << ": "
                                        << figure.predicted << " for " << figure.measured;
    }
    EXPECT_GT(scored, 0) << score.title;
  }
}

TEST(NodePower, TheMeanOfAnH100NodeIsWithinEightPercent) {
  const auto file = measured("power/training_energy_published.csv");
  if (!std::filesystem::exists(file))
    GTEST_SKIP() << "TESSERA_MEASUREMENTS has no power/training_energy_published.csv";
  bool found = false;
  for (const NodePowerFigure& figure :
       score_node_power(file, Catalog(kSources / "configs"),
                        load_weights(kSources / "predictor/weights/tessera.pb"))) {
    if (figure.what != "largest mean share of the rated 10.2 kW") continue;
    found = true;
    EXPECT_LT(std::abs(figure.error_pct()), 8);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace tessera
