#include "sim/engine/clock/action.h"

#include <array>
#include <memory>

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Action, IsEmptyUntilItGetsSomethingToDo) {
  Action action;
  EXPECT_FALSE(action);
  int calls = 0;
  action = [&calls] { ++calls; };
  ASSERT_TRUE(action);
  action();
  action();
  EXPECT_EQ(calls, 2);
}

TEST(Action, TakesWithItWhatDoesNotFitInside) {
  const std::array<int, 100> numbers = {1, 2, 3};
  int sum = 0;
  Action action = [numbers, &sum] { sum = numbers[0] + numbers[1] + numbers[2]; };
  Action moved = std::move(action);
  EXPECT_FALSE(action);  // NOLINT(bugprone-use-after-move): this is what is asked
  moved();
  EXPECT_EQ(sum, 6);
}

TEST(Action, DropsItsCapturesOnce) {
  auto counted = std::make_shared<int>(0);
  {
    Action action = [counted] { ++*counted; };
    EXPECT_EQ(counted.use_count(), 2);
    Action moved = std::move(action);
    EXPECT_EQ(counted.use_count(), 2);
    moved();
    moved = nullptr;
    EXPECT_EQ(counted.use_count(), 1);
  }
  EXPECT_EQ(counted.use_count(), 1);
  EXPECT_EQ(*counted, 1);
}

TEST(Action, HoldsAnotherOne) {
  int calls = 0;
  Action inner = [&calls] { ++calls; };
  Action outer = [inner = std::move(inner)]() mutable { inner(); };
  Action moved = std::move(outer);
  moved();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tessera
