#include "sim/process/late_load.h"

#include <string>

#include <gtest/gtest.h>

#include "sim/process/forked_call.h"

namespace tessera {
namespace {

bool loaded = false;
int loads = 0;

class LateLoadTest : public testing::Test {
 protected:
  LateLoadTest() {
    late_load() = {[] { return loaded; },
                   [] {
                     loaded = true;
                     ++loads;
                   }};
  }
};

std::string says_whether_loaded() {
  return loaded ? "loaded" : "not loaded";
}

std::string loads_itself() {
  late_load().load();
  return "done";
}

TEST_F(LateLoadTest, IsInProcessesThatAreForkedAfterOneThatNeededIt) {
  EXPECT_EQ(run_forked(loads_itself), "done");
  EXPECT_EQ(loads, 0);  // the parent need not wait for it before it goes on
  EXPECT_EQ(run_forked(says_whether_loaded), "loaded");
  EXPECT_EQ(run_forked(says_whether_loaded), "loaded");
  EXPECT_EQ(loads, 1);
}

TEST_F(LateLoadTest, IsLeftAloneWhereNoCallNeedsIt) {
  EXPECT_EQ(run_forked(says_whether_loaded), "not loaded");
  EXPECT_EQ(run_forked(says_whether_loaded), "not loaded");
  EXPECT_EQ(loads, 0);
}

}  // namespace
}  // namespace tessera
