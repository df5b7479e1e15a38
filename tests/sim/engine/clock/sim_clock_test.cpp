#include "sim/engine/clock/sim_clock.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/process/forked_call.h"
#include "sim/simgrid/platform.h"
#include "sim/simgrid/simgrid_links.h"
#include "sim/simgrid/simgrid_session.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

/// SimGrid with nothing on it but its clock.
class SimClockTest : public testing::Test {
 protected:
  std::unique_ptr<simgrid::s4u::Engine> engine_ = start_simgrid();
  LinkPaths paths_{{}, {}};
  Platform platform_{paths_, 1};
  SimGridClock simgrid_;

  void run(SimClock& clock) {
    clock.join_simgrid(simgrid_);
    engine_->run();
  }
};

TEST_F(SimClockTest, ActionsRunByDateAndThenInTheOrderOfPosting) {
  SimClock clock;
  std::vector<int> order;
  clock.at(2_us, [&] { order.push_back(3); });
  clock.at(1_us, [&] { order.push_back(1); });
  clock.at(2_us, [&] { order.push_back(4); });
  clock.at(1_us, [&] { order.push_back(2); });
  run(clock);
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST_F(SimClockTest, ActionsOfADateRunInTheOrderOfPostingHoweverManyDatesLieBetween) {
  SimClock clock;
  constexpr int kDates = 10, kRounds = 3;
  std::vector<int> order, expected;
  for (int round = 0; round < kRounds; ++round) {
    for (int date = 1; date <= kDates; ++date)
      clock.at(1_us * date, [&order, date, round] { order.push_back(kRounds * date + round); });
  }
  // One that is posted for now runs behind those that wait for the same date.
  clock.at(5_us, [&] { clock.after(0_s, [&] { order.push_back(0); }); });
  for (int date = 1; date <= kDates; ++date) {
    for (int round = 0; round < kRounds; ++round) expected.push_back(kRounds * date + round);
    if (date == 5) expected.push_back(0);
  }
  run(clock);
  EXPECT_EQ(order, expected);
  EXPECT_EQ(clock.events(), static_cast<std::uint64_t>(kDates * kRounds + 2));
}

TEST_F(SimClockTest, RunsAloneUntilSimGridIsAskedForAndGoesOnInIt) {
  SimClock clock;
  std::vector<std::string> order;
  clock.at(3_us, [&] { order.push_back("3 us"); });
  clock.at(1_us, [&] {
    order.push_back("1 us");
    clock.in_step([&] { order.push_back("in step"); });
  });
  clock.at(1_us, [&] { order.push_back("1 us too"); });
  clock.run_alone();
  EXPECT_TRUE(clock.waits_for_simgrid());
  EXPECT_THAT(order, ElementsAre("1 us", "1 us too"));
  run(clock);
  EXPECT_THAT(order, ElementsAre("1 us", "1 us too", "in step", "3 us"));
  EXPECT_EQ(clock.now(), 3_us);
}

TEST_F(SimClockTest, RunsAloneToTheEndWhereNobodyAsksForSimGrid) {
  SimClock clock;
  int ran = 0;
  clock.at(2_us, [&] { clock.after(1_us, [&] { ++ran; }); });
  clock.run_alone();
  EXPECT_FALSE(clock.waits_for_simgrid());
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(clock.now(), 3_us);
}

TEST_F(SimClockTest, RunsAheadOfSimGridUntilSomebodyNeedsItsClock) {
  SimClock clock;
  std::vector<std::string> order;
  const auto note = [&](const std::string& what) { order.push_back(what); };
  double in_step = 0;
  clock.at(1_us, [&] { note(clock.ahead() ? "ahead at 1" : "at 1"); });
  clock.at(5_us, [&] {
    note(clock.ahead() ? "ahead at 5" : "at 5");
    clock.in_step([&] {
      note(clock.ahead() ? "ahead in step" : "in step");
      in_step = simgrid::s4u::Engine::get_clock();
      clock.occupy();  // until 7 us SimGrid may bring up something
    });
  });
  clock.at(7_us, [&] {
    note(clock.ahead() ? "ahead at 7" : "at 7");
    clock.release();
  });
  clock.at(9_us, [&] { note(clock.ahead() ? "ahead at 9" : "at 9"); });
  run(clock);
  EXPECT_THAT(order, ElementsAre("at 1", "ahead at 5", "in step", "at 7", "ahead at 9"));
  EXPECT_DOUBLE_EQ(in_step, 5e-6);
}

TEST_F(SimClockTest, RunsAheadUpToTheDateFromWhichSimGridMayBringUpSomething) {
  SimClock clock;
  std::vector<std::string> order;
  const auto note = [&](const std::string& what) {
    order.push_back((clock.ahead() ? "ahead at " : "at ") + what);
  };
  clock.at(1_us, [&] {
    clock.occupy(6_us);
    clock.occupy(4_us);
  });
  clock.at(3_us, [&] { note("3"); });
  clock.at(4_us, [&] { note("4"); });
  clock.at(5_us, [&] {
    note("5");
    clock.release(4_us);
  });
  clock.at(5500_us / 1000.0, [&] { note("5.5"); });
  clock.at(7_us, [&] { note("7"); });
  run(clock);
  EXPECT_THAT(order, ElementsAre("ahead at 3", "at 4", "at 5", "ahead at 5.5", "at 7"));
}

TEST_F(SimClockTest, AChainOfDelaysEndsExactlyAtItsSum) {
  SimClock clock;
  const Seconds delay(0.1e-6);  // not a binary fraction: the sum rounds at every step
  Seconds sum;
  int left = 1000;
  std::function<void()> next = [&] {
    if (left-- == 0) return;
    sum += delay;
    clock.after(delay, [&] { next(); });
  };
  clock.at(0_s, [&] { next(); });
  run(clock);
  EXPECT_EQ(clock.now(), sum);
}

TEST_F(SimClockTest, ADateInThePastMeansNow) {
  SimClock clock;
  Seconds ran;
  clock.at(5_us, [&] { clock.at(1_us, [&] { ran = clock.now(); }); });
  run(clock);
  EXPECT_EQ(ran, 5_us);
}

TEST_F(SimClockTest, AnExceptionOfAnActionReachesTheCallerOfRun) {
  SimClock clock;
  clock.at(1_us, [] { throw std::runtime_error("from an action"); });
  // In a fork: SimGrid loses the timer whose callback throws, which leak checkers would report.
  const auto outcome = [&] {
    try {
      run(clock);
      return std::string("ended");
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(run_forked(outcome), "from an action");
}

}  // namespace
}  // namespace tessera
