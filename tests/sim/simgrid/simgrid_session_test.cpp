#include "sim/simgrid/simgrid_session.h"

#include <csignal>
#include <stdexcept>

#include <gtest/gtest.h>

namespace tessera {
namespace {

void ignore_interrupt(int) {}

TEST(SimGridSession, LeavesTheHandlerOfCtrlCToTheProgram) {
  std::signal(SIGINT, ignore_interrupt);
  const auto engine = start_simgrid();
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), &ignore_interrupt);
}

TEST(SimGridSession, CtrlCEndsAProcessWithoutAHandler) {
  const auto engine = start_simgrid();
  EXPECT_EXIT(raise(SIGINT), testing::KilledBySignal(SIGINT), "");
}

TEST(SimGridSession, ASecondSessionInAProcessIsRefused) {
  { const auto engine = start_simgrid(); }
  EXPECT_THROW(start_simgrid(), std::logic_error);
}

}  // namespace
}  // namespace tessera
