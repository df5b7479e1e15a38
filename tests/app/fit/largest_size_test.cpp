#include "app/fit/largest_size.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

/// 10 B and 3 B for each, up to a size; counts how often it was asked.
struct Line {
  std::int64_t most = 1'000'000;
  int asked = 0;

  NeedOfSize need() {
    return [this](std::int64_t size) -> std::optional<Bytes> {
      ++asked;
      if (size > most) return std::nullopt;
      return Bytes(10 + 3 * size);
    };
  }
};

Bytes tenth_more(Bytes bytes) {
  return Bytes((bytes.value() * 11 + 9) / 10);
}

TEST(LargestSize, IsTheLastOneWithinTheCapacity) {
  Line line;
  const LargestSize size = largest_size(line.need(), {.most = 65536}, 1000_B, tenth_more);
  EXPECT_EQ(size.fits, 330);  // 10 + 3 * 330 = 1000
  EXPECT_EQ(size.sure, 299);  // 1.1 * (10 + 3 * 299) = 997.7, of 300 it is 1001
  EXPECT_EQ(size.limit, "");
}

TEST(LargestSize, AStraightLineTakesFewQuestions) {
  Line line;
  largest_size(line.need(), {.most = 65536, .first = 4}, 1000_B, tenth_more);
  EXPECT_LE(line.asked, 8);
}

TEST(LargestSize, EveryCapacityAndFirstSizeGivesTheSame) {
  for (std::int64_t capacity = 1; capacity < 200; ++capacity) {
    const std::int64_t expected = capacity < 13 ? 0 : (capacity - 10) / 3;
    for (const std::int64_t first : {1, 2, 7, 50}) {
      Line line;
      const SizeRange range{.unit = 1, .most = 65536, .first = first};
      EXPECT_EQ(largest_size(line.need(), range, Bytes(capacity), tenth_more).fits, expected)
          << capacity << " from " << first;
    }
  }
}

TEST(LargestSize, NothingFitsWhereOneDoesNot) {
  Line line;
  const LargestSize size = largest_size(line.need(), {.most = 100}, 12_B, tenth_more);
  EXPECT_EQ(size.fits, 0);
  EXPECT_EQ(size.sure, 0);
}

TEST(LargestSize, SizesThatTheRulesRefuseEndIt) {
  Line line{.most = 77};
  const LargestSize size = largest_size(line.need(), {.most = 65536}, 1000_B, tenth_more);
  EXPECT_EQ(size.fits, 77);
  EXPECT_EQ(size.limit, "the model or the layout");
}

TEST(LargestSize, CountsInUnits) {
  Line line;
  const SizeRange range{.unit = 64, .most = 1000, .first = 2};
  EXPECT_EQ(largest_size(line.need(), range, 1000_B, tenth_more).fits, 320);  // 5 * 64 <= 330
}

TEST(LargestSize, StepsInTheNeedDoNotLeadAstray) {
  // Segments of 100 B: the line through two points is wrong by up to one of them.
  const NeedOfSize need = [](std::int64_t size) -> std::optional<Bytes> {
    return Bytes((10 + 3 * size + 99) / 100 * 100);
  };
  EXPECT_EQ(largest_size(need, {.most = 65536}, 1000_B, tenth_more).fits, 330);
}

TEST(ConfirmedSize, AsksForTheSizesOfTheGuessAlone) {
  Line line;
  const LargestSize guess{.fits = 330, .sure = 299, .limit = {}};
  const LargestSize size = confirmed_size(line.need(), guess, {.most = 65536}, 1000_B, tenth_more);
  EXPECT_EQ(size.fits, 330);
  EXPECT_EQ(line.asked, 4);
}

TEST(ConfirmedSize, AGuessThatIsWrongIsFoundOut) {
  Line line;
  const LargestSize guess{.fits = 400, .sure = 299, .limit = {}};
  EXPECT_EQ(confirmed_size(line.need(), guess, {.most = 65536}, 1000_B, tenth_more).fits, 330);
}

}  // namespace
}  // namespace tessera
