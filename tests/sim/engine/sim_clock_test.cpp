#include "sim/engine/sim_clock.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/platform.h"
#include "sim/engine/simgrid_session.h"
#include "sim/process/forked_call.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

/// SimGrid with nothing on it but its clock.
class SimClockTest : public testing::Test {
 protected:
  std::unique_ptr<simgrid::s4u::Engine> engine_ = start_simgrid();
  Platform platform_{{}, 1, {}};
};

TEST_F(SimClockTest, ActionsRunByDateAndThenInTheOrderOfPosting) {
  SimClock clock;
  std::vector<int> order;
  clock.at(2_us, [&] { order.push_back(3); });
  clock.at(1_us, [&] { order.push_back(1); });
  clock.at(2_us, [&] { order.push_back(4); });
  clock.at(1_us, [&] { order.push_back(2); });
  engine_->run();
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST_F(SimClockTest, AChainOfDelaysEndsExactlyAtItsSum) {
  SimClock clock;
  const Seconds delay(0.1e-6);  // not a binary fraction: the sum rounds at every step
  Seconds sum;
  int left = 1000;
  Action next = [&] {
    if (left-- == 0) return;
    sum += delay;
    clock.after(delay, next);
  };
  clock.at(0_s, next);
  engine_->run();
  EXPECT_EQ(clock.now(), sum);
}

TEST_F(SimClockTest, ADateInThePastMeansNow) {
  SimClock clock;
  Seconds ran;
  clock.at(5_us, [&] { clock.at(1_us, [&] { ran = clock.now(); }); });
  engine_->run();
  EXPECT_EQ(ran, 5_us);
}

TEST_F(SimClockTest, AnExceptionOfAnActionReachesTheCallerOfRun) {
  SimClock clock;
  clock.at(1_us, [] { throw std::runtime_error("from an action"); });
  // In a fork: SimGrid loses the timer whose callback throws, which leak checkers would report.
  const auto outcome = [&] {
    try {
      engine_->run();
      return std::string("ended");
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(run_forked(outcome), "from an action");
}

}  // namespace
}  // namespace tessera
