#include "sim/engine/network/flow_network.h"

#include <memory>

#include <gtest/gtest.h>

#include "sim/engine/clock/simgrid_session.h"

namespace tessera {
namespace {

constexpr double kPicosecond = 1e-12;

Link link_of(BytesPerSecond bandwidth) {
  Link link;
  link.name = "link";
  link.bandwidth = bandwidth;
  link.latency = Seconds(1);  // must not reach SimGrid
  return link;
}

/// A flow of a test: starts at `start`, crosses `path`.
struct TestFlow {
  int path = 0;
  double bytes = 0;
  Seconds start;
};

/// Runs flows over links without any GPU and returns when each ended.
std::vector<double> end_times(const std::vector<Link>& links,
                              const std::vector<std::vector<LinkId>>& paths,
                              const std::vector<TestFlow>& flows) {
  const auto engine = start_simgrid();
  SimClock clock;
  const Platform platform(links, 0, paths);
  FlowNetwork network(platform, clock);
  std::vector<double> ends(flows.size(), -1);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const TestFlow& flow = flows[i];
    double& end = ends[i];
    clock.at(flow.start, [&] {
      network.start(PathId(flow.path), flow.bytes, [&] { end = clock.now().value(); });
    });
  }
  engine->run();
  return ends;
}

TEST(FlowNetwork, TenKilobytesAfterFiveMicrosecondsAt50GBpsEndAt5200Nanoseconds) {
  // 5 us + 10 KB / 50 GB/s = 5.2 us; SimGrid's defaults give 65.3 us
  const auto ends = end_times({link_of(50_GBps)}, {{LinkId(0)}}, {{0, 10e3, 5_us}});
  EXPECT_NEAR(ends[0], 5.2e-6, kPicosecond);
}

TEST(FlowNetwork, EndsOnTimeThoughTheClockHasDatesBeforeAndBehind) {
  // 1 MB at 100 GB/s takes 10 us: the clock may run ahead of SimGrid to 5 us, not to 15 us.
  const auto engine = start_simgrid();
  SimClock clock;
  const Platform platform(std::vector<Link>{link_of(100_GBps)}, 0, {{LinkId(0)}});
  FlowNetwork network(platform, clock);
  double end = -1;
  bool ended_at_5 = false, ended_at_15 = false;
  clock.at(0_s, [&] { network.start(PathId(0), 1e6, [&] { end = clock.now().value(); }); });
  clock.at(5_us, [&] { ended_at_5 = end >= 0; });
  clock.at(15_us, [&] { ended_at_15 = end >= 0; });
  engine->run();
  EXPECT_NEAR(end, 10e-6, kPicosecond);
  EXPECT_FALSE(ended_at_5);
  EXPECT_TRUE(ended_at_15);
}

TEST(FlowNetwork, OneGigabyteAt450GBpsTakesItsBytesOverTheRate) {
  // 1e9 / 450e9 = 2.222 ms; TCP's window would make it 5.046 ms at 10 us
  const auto ends = end_times({link_of(450_GBps)}, {{LinkId(0)}}, {{0, 1e9, 10_us}});
  EXPECT_NEAR(ends[0], 10e-6 + 1e9 / 450e9, kPicosecond);
}

TEST(FlowNetwork, OppositeDirectionsDoNotDisturbEachOther) {
  const auto ends = end_times({link_of(50_GBps), link_of(50_GBps)}, {{LinkId(0)}, {LinkId(1)}},
                              {{0, 1e9, 0_s}, {1, 1e9, 0_s}});
  EXPECT_NEAR(ends[0], 0.020, kPicosecond);
  EXPECT_NEAR(ends[1], 0.020, kPicosecond);
}

TEST(FlowNetwork, ThreeFlowsOverTwoLinksShareMaxMin) {
  // Links of 10 and 20 GB/s, 1 GB each: the flow over both and the one over the first get 5 GB/s;
  // the third gets what is left of the second link, 15 GB/s. 200, 200 and 66.667 ms.
  const LinkId narrow(0);
  const LinkId wide(1);
  const auto ends =
      end_times({link_of(10_GBps), link_of(20_GBps)}, {{narrow, wide}, {narrow}, {wide}},
                {{0, 1e9, 0_s}, {1, 1e9, 0_s}, {2, 1e9, 0_s}});
  EXPECT_NEAR(ends[0], 0.200, kPicosecond);
  EXPECT_NEAR(ends[1], 0.200, kPicosecond);
  EXPECT_NEAR(ends[2], 1.0 / 15, kPicosecond);
}

TEST(FlowNetwork, AFlowThatWasAloneSharesFromTheDateOnThatAnotherComes) {
  // 1 GB at 10 GB/s. Alone for 40 ms (0.4 GB), then 5 GB/s each: the second's 0.2 GB take 40 ms,
  // the first moves as much in that time and its last 0.4 GB at 10 GB/s: 40 + 40 + 40 ms.
  const auto ends = end_times({link_of(10_GBps)}, {{LinkId(0)}}, {{0, 1e9, 0_s}, {0, 0.2e9, 40_ms}});
  EXPECT_NEAR(ends[0], 0.120, kPicosecond);
  EXPECT_NEAR(ends[1], 0.080, kPicosecond);
}

TEST(FlowNetwork, AFlowThatComesWhenAnotherEndsIsAlone) {
  const auto ends = end_times({link_of(10_GBps)}, {{LinkId(0)}}, {{0, 1e9, 0_s}, {0, 1e9, 100_ms}});
  EXPECT_NEAR(ends[0], 0.100, kPicosecond);
  EXPECT_NEAR(ends[1], 0.200, kPicosecond);
}

TEST(FlowNetwork, OneFlowEndsTheSolitudeOfTwoOthers) {
  // Two flows alone on links of 10 GB/s for 50 ms (0.5 GB each); the third crosses both links and
  // moves its 0.1 GB in 20 ms at 5 GB/s, as they do; their last 0.4 GB take 40 ms.
  const LinkId left(0);
  const LinkId right(1);
  const auto ends = end_times({link_of(10_GBps), link_of(10_GBps)}, {{left}, {right}, {left, right}},
                              {{0, 1e9, 0_s}, {1, 1e9, 0_s}, {2, 0.1e9, 50_ms}});
  EXPECT_NEAR(ends[0], 0.110, kPicosecond);
  EXPECT_NEAR(ends[1], 0.110, kPicosecond);
  EXPECT_NEAR(ends[2], 0.070, kPicosecond);
}

TEST(FlowNetwork, ALimitHoldsForAFlowAloneAndWhereItMeetsAnother) {
  // 1 GB at 10 GB/s, from 20 ms on at most 2 GB/s: 0.2 + 0.2 GB until 120 ms. There a flow of 0.4 GB
  // comes and gets the other 8 GB/s for 50 ms. At 200 ms (0.56 GB done) the limit is lifted.
  const auto engine = start_simgrid();
  SimClock clock;
  const Platform platform(std::vector<Link>{link_of(10_GBps)}, 0, {{LinkId(0)}, {LinkId(0)}},
                          {true, false});
  FlowNetwork network(platform, clock);
  double limited = 0, other = 0;
  clock.at(0_s, [&] { network.start(PathId(0), 1e9, [&] { limited = clock.now().value(); }); });
  clock.at(20_ms, [&] { network.limit(PathId(0), 2_GBps); });
  clock.at(120_ms, [&] { network.start(PathId(1), 0.4e9, [&] { other = clock.now().value(); }); });
  clock.at(200_ms, [&] { network.limit(PathId(0), Platform::kNoLimit); });
  engine->run();
  EXPECT_NEAR(other, 0.170, kPicosecond);
  EXPECT_NEAR(limited, 0.200 + 0.044, kPicosecond);
}

/// All links of a ring of `ranks` edges of 50 GB/s as path 0, edge 0 as path 1, edge 2 as path 2.
double disturbed_ring_all_reduce(int ranks) {
  std::vector<Link> links(static_cast<std::size_t>(ranks), link_of(50_GBps));
  std::vector<LinkId> ring;
  for (int edge = 0; edge < ranks; ++edge) ring.push_back(LinkId(edge));
  const double bytes_per_edge = 2.0 * (ranks - 1) / ranks * 1e9;
  return end_times(links, {ring, {LinkId(0)}, {LinkId(2)}},
                   {{0, bytes_per_edge, 0_s}, {1, 0.25e9, 0_s}, {2, 0.25e9, 10_ms}})[0];
}

TEST(FlowNetwork, AnEightRankRingSlowsDownAsAWholeWhereOneEdgeIsShared) {
  // 1.75 GB per edge. Two disturbances of 0.25 GB share an edge for 10 ms each: the ring moves
  // 25 GB/s for 20 ms (0.5 GB), then 50 GB/s for 1.25 GB = 25 ms. Independent edges: 40 ms.
  EXPECT_NEAR(disturbed_ring_all_reduce(8), 0.045, kPicosecond);
}

TEST(FlowNetwork, A64RankRingSlowsDownAsAWholeWhereOneEdgeIsShared) {
  // 1.96875 GB per edge: 20 ms + (1.96875 - 0.5) GB / 50 GB/s = 49.375 ms
  EXPECT_NEAR(disturbed_ring_all_reduce(64), 0.049375, kPicosecond);
}

TEST(FlowNetwork, ALinkNamedTwiceCarriesTheBytesTwice) {
  const auto ends = end_times({link_of(50_GBps)}, {{LinkId(0), LinkId(0)}}, {{0, 1e9, 0_s}});
  EXPECT_NEAR(ends[0], 0.040, kPicosecond);
}

TEST(FlowNetwork, BytesAreRoundedAndAnEmptyFlowStillEnds) {
  const auto ends = end_times({link_of(1_GBps), link_of(1_GBps)}, {{LinkId(0)}, {LinkId(1)}},
                              {{0, 0, 0_s}, {1, 1000.4, 0_s}});
  EXPECT_NEAR(ends[0], 1e-9, kPicosecond);
  EXPECT_NEAR(ends[1], 1000e-9, kPicosecond);
}

}  // namespace
}  // namespace tessera
