#include "sim/scenario/names.h"

#include <gtest/gtest.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

TEST(MemoryPlannerNames, AreReadBackAndLeaveOutOff) {
  const std::vector<std::string> names = memory_planner_names();
  for (const std::string& name : names) EXPECT_EQ(name_of(memory_planner_of(name)), name);
  EXPECT_EQ(names.front(), "tessera");
  EXPECT_EQ(names.size(), 14U);
  EXPECT_EQ(memory_planner_of("off"), MemoryPlanner::off);
  EXPECT_THROW(memory_planner_of("nobody"), InputError);
}

}  // namespace
}  // namespace tessera
