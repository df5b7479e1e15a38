#include "sim/longrun/run_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Micros kHour = Micros(3'600'000'000);

/// Rectangles of one colour, those of the legend included.
int rects_of(const std::string& svg, const std::string& colour) {
  int count = 0;
  for (std::size_t at = svg.find(colour); at != svg.npos; at = svg.find(colour, at + 1)) ++count;
  return count;
}

TEST(TimelinePicture, SaysHowMuchOfTheTimeEachActivityTook) {
  // Two days: 36 h of training, then 12 h without nodes.
  const std::string svg = timeline_picture("job", {{Micros(0), kHour * 36, Activity::training},
                                                   {kHour * 36, kHour * 48, Activity::waiting}});
  EXPECT_THAT(svg, HasSubstr("trains 75.00 %"));
  EXPECT_THAT(svg, HasSubstr("waits for nodes 25.00 %"));
  EXPECT_THAT(svg, Not(HasSubstr("restarts")));
  EXPECT_THAT(svg, HasSubstr("day 2"));
  EXPECT_EQ(rects_of(svg, "#3156bb"), 3);  // legend, day 1, the morning of day 2
  EXPECT_EQ(rects_of(svg, "#c4c9d0"), 2);
}

TEST(TimelinePicture, LongRunsHaveSeveralDaysPerLine) {
  // 366 days over at most 62 lines: six days each, 61 lines.
  const std::string svg = timeline_picture("year", {{Micros(0), days_of(366), Activity::training}});
  EXPECT_EQ(rects_of(svg, "#3156bb"), 62);  // and the legend's
  EXPECT_THAT(svg, HasSubstr("day 361"));
}

TEST(TimelinePicture, TitlesAreEscaped) {
  EXPECT_THAT(timeline_picture("a<b", {{Micros(0), kHour, Activity::training}}),
              HasSubstr("a&lt;b"));
}

}  // namespace
}  // namespace tessera
