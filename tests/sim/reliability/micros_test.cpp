#include "sim/reliability/micros.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Micros, SecondsAreRoundedToTheNearest) {
  EXPECT_EQ(to_micros(Seconds(1.2345676e-3)), Micros(1235));
  EXPECT_EQ(to_micros(Seconds(1e30)), kLongestTime);
  EXPECT_EQ(days_of(2), Micros(172'800'000'000));
  EXPECT_DOUBLE_EQ(in_hours(days_of(1)), 24);
}

}  // namespace
}  // namespace tessera
