#include "workloads/parallel/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using testing::ElementsAre;

StorageId storage(int index) {
  return StorageId(index);
}

GraphOp kernel(Phase phase, std::vector<int> reads, int written) {
  GraphOp op;
  op.phase = phase;
  op.name = "k";
  for (const int read : reads) op.reads.push_back({storage(read), Bytes(1)});
  op.writes.push_back({storage(written), Bytes(1)});
  return op;
}

TEST(CutIntoSegments, EachSegmentNamesWhatItTouchesOnceInTheOrderOfItsKernels) {
  const std::vector<Storage> storages(5);
  const std::vector<GraphOp> ops{kernel(Phase::forward, {3, 1}, 2),
                                 kernel(Phase::forward, {1, 2}, 2),
                                 kernel(Phase::loss, {2, 3, 3}, 4),  // a segment of its own
                                 kernel(Phase::backward, {4, 1}, 0)};
  std::vector<Segment> segments;
  cut_into_segments({.ops = ops, .name = "pass", .block = 0, .storages = &storages}, {}, segments);
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_THAT(segments[0].touches, ElementsAre(storage(3), storage(1), storage(2)));
  EXPECT_THAT(segments[0].writes, ElementsAre(storage(2)));
  EXPECT_THAT(segments[1].touches, ElementsAre(storage(2), storage(3), storage(4)));
  EXPECT_THAT(segments[1].writes, ElementsAre(storage(4)));
  EXPECT_THAT(segments[2].touches, ElementsAre(storage(4), storage(1), storage(0)));
  EXPECT_THAT(segments[2].writes, ElementsAre(storage(0)));
}

}  // namespace
}  // namespace tessera
