#include "sim/collectives/rings/ring_search.h"

#include <algorithm>

namespace tessera {
namespace {

LaneMatrix full_mesh(int gpus, int lanes) {
  LaneMatrix matrix(gpus);
  for (int a = 0; a < gpus; ++a) {
    for (int b = a + 1; b < gpus; ++b) matrix.set(a, b, lanes);
  }
  return matrix;
}

LaneMatrix cube_mesh() {
  LaneMatrix lanes(8);
  const int pairs[][3] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                          {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                          {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  for (const auto& [a, b, count] : pairs) lanes.set(a, b, count);
  return lanes;
}

TEST(RingSearch, FullMeshOfFourIsUsedUp) {
  // 6 lanes to each of 3 peers; a ring takes 2 lanes of every GPU: 18 / 2.
  EXPECT_EQ(pack_rings(full_mesh(4, 6)).size(), 9u);
  EXPECT_EQ(pack_rings(full_mesh(4, 4)).size(), 6u);
}

TEST(RingSearch, CubeMeshIsUsedUp) {
  EXPECT_EQ(pack_rings(cube_mesh()).size(), 3u);  // 6 lanes of every GPU / 2
}

TEST(RingSearch, TwoGpusHaveOneRingPerLane) {
  EXPECT_EQ(pack_rings(full_mesh(2, 5)).size(), 5u);
}

TEST(RingSearch, ThreeGpusHaveOneRingPerLane) {
  EXPECT_EQ(pack_rings(full_mesh(3, 4)).size(), 4u);
}

TEST(RingSearch, NarrowestBundleLimitsTheOnlyRing) {
  LaneMatrix square(4);  // 0-1-2-3-0
  square.set(0, 1, 2);
  square.set(1, 2, 1);
  square.set(2, 3, 2);
  square.set(3, 0, 2);
  EXPECT_EQ(pack_rings(square), std::vector<RingOrder>({{0, 1, 2, 3}}));
}

TEST(RingSearch, AChainClosesNoRing) {
  LaneMatrix chain(3);
  chain.set(0, 1, 2);
  chain.set(1, 2, 2);
  EXPECT_TRUE(pack_rings(chain).empty());
}

TEST(RingSearch, RingsVisitEveryGpuOnceAndFitTheLanes) {
  LaneMatrix left = cube_mesh();
  for (const RingOrder& ring : pack_rings(cube_mesh())) {
    RingOrder sorted = ring;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, RingOrder({0, 1, 2, 3, 4, 5, 6, 7}));
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const int a = ring[i];
      const int b = ring[(i + 1) % ring.size()];
      ASSERT_GT(left.lanes(a, b), 0);
      left.set(a, b, left.lanes(a, b) - 1);
    }
  }
}

}  // namespace
}  // namespace tessera
