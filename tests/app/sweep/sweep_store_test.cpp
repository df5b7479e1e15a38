#include "app/sweep/sweep_store.h"

#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/sweep/sweep_text.h"
#include "hw/units/input_error.h"
#include "tests/app/sweep/sweep_files.h"

namespace tessera {
namespace {

using testing::HasSubstr;

const SweepIdentity kIdentity{"test", {"a", "b"}, "f1"};

SweepPoint point_of(std::int64_t number, std::string a, std::string b) {
  SweepPoint point;
  point.number = number;
  point.values = {std::move(a), std::move(b)};
  return point;
}

std::string metrics(double step_time) {
  return "{\"gpus\":1,\"step_time_s\":" + std::to_string(step_time) + ",\"fits\":true}";
}

TEST(SweepStore, WhatIsAddedIsThereAfterOpeningAgain) {
  const ScratchFolder folder;
  {
    SweepStore store(folder.path() / "s.sqlite", kIdentity);
    store.add({"k1", PointOutcome::ok, metrics(0.5), 1},
              {point_of(3, "x", "1"), point_of(5, "y", "2")});
    store.add_invalid(point_of(4, "z", "3"), "a = 7 does not divide b");
    store.add({"k2", PointOutcome::timed_out, "", 2.5}, {point_of(1, "w", "4")});
  }
  SweepStore store(folder.path() / "s.sqlite");
  EXPECT_EQ(store.identity().columns, kIdentity.columns);
  EXPECT_EQ(store.result("k1")->answer, metrics(0.5));
  EXPECT_EQ(store.result("k2")->wall_s, 2.5);
  EXPECT_FALSE(store.result("k3"));
  EXPECT_EQ(
      sweep_csv(store),
      "point,a,b,outcome,reason,gpus,step_time_s,tokens_per_s,tokens_per_s_per_gpu,mfu,"
      "bubble_fraction,exposed_communication_s,peak_memory_bytes,reserved_memory_bytes,"
      "context_memory_bytes,nccl_memory_bytes,device_memory_bytes,memory_bytes,fits,approximate\n"
      "1,w,4,timeout,,,,,,,,,,,,,,,,\n"
      "3,x,1,ok,,1,0.5,,,,,,,,,,,,true,\n"
      "4,z,3,invalid,a = 7 does not divide b,,,,,,,,,,,,,,,\n"
      "5,y,2,ok,,1,0.5,,,,,,,,,,,,true,\n");
}

TEST(SweepStore, TextsOfTheUserCannotBreakTheTable) {
  const ScratchFolder folder;
  SweepStore store(folder.path() / "s.sqlite", kIdentity);
  store.add_invalid(point_of(0, "a,\"b\"\nc", "'); DROP TABLE points; --"), "x,y");
  EXPECT_THAT(sweep_csv(store),
              HasSubstr("\n0,\"a,\"\"b\"\"\nc\",'); DROP TABLE points; --,invalid,\"x,y\","));
}

TEST(SweepStore, AnotherSweepKeepsTheResultsAndNotThePoints) {
  const ScratchFolder folder;
  {
    SweepStore store(folder.path() / "s.sqlite", kIdentity);
    store.add({"k1", PointOutcome::ok, metrics(0.5), 1}, {point_of(3, "x", "1")});
  }
  SweepStore store(folder.path() / "s.sqlite", {"other", {"c"}, "f2"});
  EXPECT_EQ(store.points(), 0);
  EXPECT_TRUE(store.result("k1"));
}

TEST(SweepStore, TakingOverTwiceIsTakingOverOnce) {
  const ScratchFolder folder;
  SweepStore all(folder.path() / "all.sqlite", kIdentity);
  SweepStore shard(folder.path() / "shard.sqlite", kIdentity);
  all.add({"k1", PointOutcome::failed, "signal 9", 1}, {point_of(1, "x", "1")});
  shard.add({"k1", PointOutcome::ok, metrics(0.5), 1}, {point_of(2, "y", "2")});
  all.take_over(shard);
  const std::string once = sweep_csv(all);
  all.take_over(shard);
  EXPECT_EQ(sweep_csv(all), once);
  EXPECT_EQ(all.points(), 2);
  EXPECT_EQ(all.result("k1")->outcome, PointOutcome::ok);
  SweepStore other(folder.path() / "other.sqlite", {"test", {"a", "b"}, "f9"});
  EXPECT_THROW(all.take_over(other), InputError);
}

TEST(SweepStore, AStoreThatIsOpenElsewhereIsRefused) {
  const ScratchFolder folder;
  const SweepStore first(folder.path() / "s.sqlite", kIdentity);
  // A second connection of this process stands for another process.
  try {
    const SweepStore second(folder.path() / "s.sqlite", kIdentity);
    FAIL() << "two stores in one file";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("another process has it open"));
  }
}

TEST(SweepStore, AStoreOfALaterFormatIsRefused) {
  const ScratchFolder folder;
  { SweepStore store(folder.path() / "s.sqlite", kIdentity); }
  {
    Database database(folder.path() / "s.sqlite");
    database.run("PRAGMA user_version=99");
  }
  EXPECT_THROW(SweepStore(folder.path() / "s.sqlite", kIdentity), InputError);
}

/// Sixty results, one of them of two points, and five invalid points.
void fill(SweepStore& store) {
  for (std::int64_t i = 0; i < 60; ++i) {
    const std::string number = std::to_string(i);
    if (store.result("key" + number)) {
      store.add_points("key" + number, {point_of(i, "x" + number, "1")});
    } else {
      store.add({"key" + number, PointOutcome::ok, metrics(0.5 + 0.01 * static_cast<double>(i)), 1},
                {point_of(i, "x" + number, "1")});
    }
  }
  store.add_points("key0", {point_of(60, "x60", "1")});
  for (std::int64_t i = 61; i < 66; ++i)
    store.add_invalid(point_of(i, "x" + std::to_string(i), "1"), "does not divide");
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// What the store says when its sweep is resumed, or an empty text where it is refused by name.
std::string resumed(const std::filesystem::path& file) {
  try {
    SweepStore store(file, kIdentity);
    fill(store);
    return sweep_csv(store);
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(file.string()));
    return "";
  }
}

/// What a merge would take over, or an empty text where it is refused by name.
std::string read_only(const std::filesystem::path& file) {
  try {
    SweepStore store(file);
    return sweep_csv(store);
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(file.string()));
    return "";
  }
}

TEST(SweepStore, NoFlippedBitMakesAnotherAnswer) {
  const ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "s.sqlite";
  {
    SweepStore store(file, kIdentity);
    fill(store);
  }
  const std::string content = content_of(file), answer = resumed(file);
  std::mt19937_64 random(20);
  int accepted = 0;
  for (int i = 0; i < 200; ++i) {
    std::string damaged = content;
    damaged[random() % damaged.size()] ^= static_cast<char>(1U << (random() % 8));
    for (const auto& read : {read_only, resumed}) {
      std::filesystem::remove(file.string() + "-wal");
      std::ofstream(file, std::ios::binary) << damaged;
      const std::string said = read(file);
      accepted += !said.empty();
      EXPECT_TRUE(said.empty() || said == answer) << "flip " << i;
    }
  }
  EXPECT_GT(accepted, 100);  // flips in unused bytes, and rows that are made anew
}

TEST(SweepStore, NoTruncationMakesAnotherAnswer) {
  const ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "s.sqlite";
  {
    SweepStore store(file, kIdentity);
    fill(store);
  }
  const std::string content = content_of(file), answer = resumed(file);
  for (std::size_t size = 1; size < content.size(); size += content.size() / 40) {
    std::ofstream(file, std::ios::binary) << content.substr(0, size);
    const std::string said = resumed(file);
    EXPECT_TRUE(said.empty() || said == answer) << size;
  }
}

TEST(SweepStore, ADamagedRowIsMadeAnewOrRefused) {
  const ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "s.sqlite";
  {
    SweepStore store(file, kIdentity);
    fill(store);
  }
  const std::string answer = resumed(file);
  { Database(file).run("UPDATE results SET answer = replace(answer, '0.55', '0.35')"); }
  EXPECT_EQ(read_only(file), "");
  {
    SweepStore store(file, kIdentity);
    EXPECT_EQ(store.discarded(), 2);  // the result and its point
    EXPECT_FALSE(store.result("key5"));
  }
  EXPECT_EQ(resumed(file), answer);
  { Database(file).run("DELETE FROM results WHERE key = 'key7'"); }
  EXPECT_EQ(read_only(file), "");
  EXPECT_EQ(resumed(file), answer);
}

TEST(ScenarioKey, FollowsFromTheScenarioAndNotFromItsName) {
  const TestSweep sweep("axes: {parallelism.tensor: [1, 2]}\n");
  Scenario scenario = sweep.source.with(sweep.grid.point(0).settings);
  const std::string key = scenario_key(scenario, "v1");
  EXPECT_EQ(key.size(), 32U);
  scenario.name = "another";
  EXPECT_EQ(scenario_key(scenario, "v1"), key);
  EXPECT_NE(scenario_key(scenario, "v2"), key);
  EXPECT_NE(scenario_key(sweep.source.with(sweep.grid.point(1).settings), "v1"), key);
}

TEST(SweepText, ProgressTellsRateAndTimeLeft) {
  SweepCounts counts;
  counts.total = 500;
  counts.simulated = 100;
  counts.invalid = 25;
  // 125 in 5 s are 25 a second: 375 more take 15 s.
  EXPECT_EQ(progress_text(counts, 5),
            "[#####...............]  125/500  25 %  25.0 points/s  0:15 left");
  counts.best = 27930.4;
  EXPECT_THAT(progress_text(counts, 5), testing::EndsWith("  0:15 left  best 27930 tok/s/GPU"));
}

TEST(SweepText, ReasonsThatDifferInNumbersAreOne) {
  const InputError a(
      Problem{"f.yaml:1:2", "parallelism.tensor = 5 does not divide heads = 96", ""});
  EXPECT_EQ(reason_class(a), "parallelism.tensor = N does not divide heads = N");
  const InputError b(Problem{"", "gpt3-2.7b in bf16 has 3.5 layers (2 too many)", ""});
  EXPECT_EQ(reason_class(b), "gpt3-2.7b in bf16 has N layers (N too many)");
}

}  // namespace
}  // namespace tessera
