// Who notices which failure, and when.
#include "sim/longrun/detection.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

/// Steps take 2 s; the file says that a failure is noticed after 7 s.
Seconds noticed(Component component, const Watch& watch) {
  const FailureClass of{.name = "of", .component = component, .detection = Seconds(7)};
  return watched(of, watch, Seconds(2)).detection;
}

TEST(Watch, ATimeOutNoticesEveryFailure) {
  const Watch watch{.collective_timeout = Seconds(600)};
  for (const Component component : kAllComponents)
    EXPECT_EQ(noticed(component, watch), Seconds(600));
}

TEST(Watch, AHeartbeatMissesWhatLeavesTheProcessAlive) {
  const Watch watch{.heartbeat = Seconds(30)};
  EXPECT_EQ(noticed(Component::host, watch), Seconds(30));
  EXPECT_EQ(noticed(Component::hbm, watch), Seconds(30));
  EXPECT_EQ(noticed(Component::nic, watch), Seconds(7));
  EXPECT_EQ(noticed(Component::network_switch, watch), Seconds(7));
}

TEST(Watch, WhoeverNoticesFirstCounts) {
  const Watch watch{
      .collective_timeout = Seconds(600), .heartbeat = Seconds(30), .progress_steps = 10};
  EXPECT_EQ(noticed(Component::gpu, watch), Seconds(20));
  EXPECT_EQ(
      noticed(Component::link, Watch{.collective_timeout = Seconds(600), .heartbeat = Seconds(30)}),
      Seconds(600));
}

TEST(Watch, ASlowNodeIsNoticedWhereItsStepTakesLongerThanProgressAllows) {
  FailureClass slow{.name = "slow", .detection = Seconds(7200), .slowdown = 1.5};
  const Watch watch{
      .collective_timeout = Seconds(600), .heartbeat = Seconds(30), .progress_steps = 3};
  EXPECT_EQ(watched(slow, watch, Seconds(2)).detection, Seconds(7200));
  slow.slowdown = 4;
  EXPECT_EQ(watched(slow, watch, Seconds(2)).detection, Seconds(6));
}

TEST(Watch, NobodySeesWrongNumbers) {
  const FailureClass silent{.name = "silent", .found_after = Seconds(3600)};
  EXPECT_EQ(watched(silent, Watch{.heartbeat = Seconds(30)}, Seconds(2)).found_after,
            Seconds(3600));
  EXPECT_EQ(watched(silent, Watch{.heartbeat = Seconds(30)}, Seconds(2)).detection, Seconds(0));
}

TEST(Watch, HeartbeatsSayNothingOfRecordedFaults) {
  EXPECT_EQ(detection_of_recorded(Watch{.heartbeat = Seconds(30)}, Seconds(2)), Seconds(0));
  EXPECT_EQ(detection_of_recorded(
                Watch{.collective_timeout = Seconds(600), .heartbeat = Seconds(30)}, Seconds(2)),
            Seconds(600));
}

TEST(Watch, IsToldInAFewWords) {
  EXPECT_EQ(text_of(Watch{.collective_timeout = Seconds(600), .progress_steps = 5}),
            "time-out 600 s, 5 steps without progress");
}

}  // namespace
}  // namespace tessera
