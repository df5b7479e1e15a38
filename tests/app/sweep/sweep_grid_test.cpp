#include "app/sweep/sweep_grid.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/app/sweep/sweep_files.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> all_values(const TestSweep& sweep, const PointChoice& choice = {}) {
  std::vector<std::string> all;
  for (const std::int64_t number : chosen_points(sweep.grid, sweep.spec, choice)) {
    std::string values;
    for (const std::string& value : sweep.grid.point(number).values)
      values += (values.empty() ? "" : " ") + value;
    all.push_back(values);
  }
  return all;
}

std::string complaint(const std::string& rest) {
  try {
    const TestSweep sweep(rest);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(SweepGrid, TheFirstAxisIsTheSlowest) {
  const TestSweep sweep("axes: {parallelism.tensor: [1, 2], training.micro_batch: [1, 2, 4]}\n");
  EXPECT_EQ(sweep.grid.size(), 6);
  EXPECT_THAT(all_values(sweep), ElementsAre("1 1", "1 2", "1 4", "2 1", "2 2", "2 4"));
}

TEST(SweepGrid, RangesIncludeTheirEnd) {
  const TestSweep doubled("axes: {training.micro_batch: {from: 1, to: 8, times: 2}}\n");
  EXPECT_THAT(all_values(doubled), ElementsAre("1", "2", "4", "8"));
  const TestSweep added("axes: {training.expert_imbalance: {from: 1, to: 1.3, step: 0.1}}\n");
  EXPECT_THAT(all_values(added), ElementsAre("1", "1.1", "1.2", "1.3"));
  const TestSweep missed("axes: {training.micro_batch: {from: 1, to: 7, step: 4}}\n");
  EXPECT_THAT(all_values(missed), ElementsAre("1", "5"));
}

TEST(SweepGrid, FieldsOfAZipChangeTogether) {
  const TestSweep sweep(
      "axes: {parallelism.tensor: [1, 2]}\n"
      "zip: [{model: [gpt2, gpt2-xl], training.sequence_length: [64, 32]}]\n");
  EXPECT_THAT(all_values(sweep),
              ElementsAre("1 gpt2 64", "1 gpt2-xl 32", "2 gpt2 64", "2 gpt2-xl 32"));
}

TEST(SweepGrid, ConditionsAndExclusionsDropPoints) {
  const TestSweep sweep(
      "axes: {parallelism.tp: [1, 2, 4], parallelism.pp: [1, 2, 4]}\n"
      "where: [parallelism.tensor * parallelism.pipeline <= training.global_batch / 2]\n"
      "exclude: [{parallelism.tensor: 1, parallelism.pipeline: [2, 4]}]\n");
  EXPECT_THAT(all_values(sweep), ElementsAre("1 1", "2 1", "2 2", "4 1"));
}

TEST(SweepGrid, DerivedFieldsFollowFromAxesAndFixedFields) {
  const TestSweep sweep(
      "axes: {parallelism.tensor: [1, 2, 3]}\n"
      "derive: {parallelism.data: training.global_batch / parallelism.tensor}\n");
  EXPECT_THAT(all_values(sweep), ElementsAre("1 8", "2 4", "3 2.6666666666666665"));
  EXPECT_EQ(sweep.grid.point(1).problem, "");
  EXPECT_THAT(sweep.grid.point(2).problem, HasSubstr("is no whole number"));
  EXPECT_EQ(sweep.source.with(sweep.grid.point(1).settings).step.layout.data, 4);
}

TEST(SweepGrid, AFieldThatFollowsFromOthersIsAskedOfTheScenario) {
  // micro_batch is global_batch / data where it is not given: 8 and 4.
  const TestSweep sweep("axes: {parallelism.data: [1, 2]}\nwhere: training.micro_batch == 4\n");
  EXPECT_EQ(all_values(sweep).size(), 2U);
  EXPECT_FALSE(sweep.grid.keeps(sweep.source.with(sweep.grid.point(0).settings)));
  EXPECT_TRUE(sweep.grid.keeps(sweep.source.with(sweep.grid.point(1).settings)));
}

TEST(SweepGrid, AConditionOnWhatAnAxisRefersToIsAskedOfTheScenario) {
  const TestSweep sweep("axes: {model: [gpt2, gpt2-xl]}\nwhere: model.layers > 12\n");
  EXPECT_EQ(all_values(sweep).size(), 2U);
  EXPECT_FALSE(sweep.grid.keeps(sweep.source.with(sweep.grid.point(0).settings)));
  EXPECT_TRUE(sweep.grid.keeps(sweep.source.with(sweep.grid.point(1).settings)));
  EXPECT_THAT(complaint("axes: {model: [gpt2]}\nderive: {parallelism.data: model.layers}\n"),
              HasSubstr("parallelism.data is derived from fields that are not axes"));
}

TEST(SweepGrid, ShardsPartTheChosenPoints) {
  const TestSweep sweep("axes: {training.micro_batch: {from: 1, to: 11, step: 1}}\n");
  std::multiset<std::string> together;
  for (int shard = 1; shard <= 4; ++shard)
    for (const std::string& value : all_values(sweep, {.shard = shard, .shards = 4}))
      together.insert(value);
  EXPECT_EQ(together.size(), 11U);
  EXPECT_EQ(std::set(together.begin(), together.end()).size(), 11U);
  EXPECT_THAT(all_values(sweep, {.shard = 2, .shards = 4}), ElementsAre("2", "6", "10"));
}

TEST(SweepGrid, ASampleDrawsOnlyWhatConditionsKeep) {
  const TestSweep sweep(
      "axes: {training.micro_batch: {from: 1, to: 40, step: 1}, parallelism.data: [1, 2, 3, 4]}\n"
      "where: parallelism.data == 3\n");
  const auto sample = chosen_points(sweep.grid, sweep.spec, {.sample = 20});
  EXPECT_EQ(sample.size(), 20U);
  for (const std::int64_t number : sample) EXPECT_EQ(sweep.grid.point(number).values[1], "3");
  // All that there are, where more are asked for.
  EXPECT_EQ(chosen_points(sweep.grid, sweep.spec, {.sample = 500}).size(), 40U);
}

TEST(SweepGrid, AGridThatNobodyWouldSimulateIsRefused) {
  const TestSweep sweep(
      "axes: {training.micro_batch: {from: 1, to: 10000, step: 1}, training.global_batch: "
      "{from: 1, to: 10000, step: 1}}\n");
  EXPECT_THROW(chosen_points(sweep.grid, sweep.spec, {}), InputError);
  EXPECT_EQ(chosen_points(sweep.grid, sweep.spec, {.sample = 10}).size(), 10U);
  EXPECT_EQ(chosen_points(sweep.grid, sweep.spec, {.limit = 3}).size(), 3U);
}

TEST(SweepReader, EveryMistakeIsReported) {
  const std::string text = complaint(
      "axes: {nothing: [1], parallelism.tensor: 4}\nwhere: [1 +, {a: b}]\nderive: 3\nlimit: 1\n");
  for (const char* part : {"no field nothing", "parallelism.tensor has no values", "\"1 +\"",
                           "where is no condition", "derive is no mapping", "unknown key limit"})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace tessera
