#include "sim/scenario/rules/counts.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(ListedValues, AreWholeOrSayHowManyAreLeftOut) {
  EXPECT_EQ(listed_values({4}), "4");
  EXPECT_EQ(listed_values({1, 2, 4}), "1, 2 or 4");
  EXPECT_EQ(listed_values(divisors(2048, 2048)),  // 2^0 to 2^11: twelve
            "1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024 or 2048");
  EXPECT_EQ(listed_values(divisors(4096, 4096)),
            "1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048 and 1 more");
}

TEST(Divisors, StopAtTheLargestThatIsAskedFor) {
  EXPECT_EQ(divisors(12, 5), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(divisors(7, 100), (std::vector<std::int64_t>{1, 7}));
}

}  // namespace
}  // namespace tessera
