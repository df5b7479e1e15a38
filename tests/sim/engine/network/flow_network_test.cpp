#include "sim/engine/network/flow_network.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "sim/engine/network/simgrid_module.h"
#include "sim/engine/network/simgrid_run.h"

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
  const LinkPaths link_paths(links, paths);
  SimGridRun simgrid;
  SimClock clock;
  FlowNetwork network(link_paths, clock);
  std::vector<double> ends(flows.size(), -1);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const TestFlow& flow = flows[i];
    double& end = ends[i];
    clock.at(flow.start, [&] {
      network.start(PathId(flow.path), flow.bytes, [&] { end = clock.now().value(); });
    });
  }
  simgrid.run(clock, network, link_paths, 0);
  return ends;
}

TEST(FlowNetwork, TenKilobytesAfterFiveMicrosecondsAt50GBpsEndAt5200Nanoseconds) {
  // 5 us + 10 KB / 50 GB/s = 5.2 us; SimGrid's defaults give 65.3 us
  const auto ends = end_times({link_of(50_GBps)}, {{LinkId(0)}}, {{0, 10e3, 5_us}});
  EXPECT_NEAR(ends[0], 5.2e-6, kPicosecond);
}

TEST(FlowNetwork, EndsOnTimeThoughTheClockHasDatesBeforeAndBehind) {
  // 1 MB at 100 GB/s takes 10 us: the clock may run ahead of SimGrid to 5 us, not to 15 us.
  const std::vector<Link> links{link_of(100_GBps)};
  const LinkPaths link_paths(links, {{LinkId(0)}});
  SimGridRun simgrid;
  SimClock clock;
  FlowNetwork network(link_paths, clock);
  double end = -1;
  bool ended_at_5 = false, ended_at_15 = false;
  clock.at(0_s, [&] { network.start(PathId(0), 1e6, [&] { end = clock.now().value(); }); });
  clock.at(5_us, [&] { ended_at_5 = end >= 0; });
  clock.at(15_us, [&] { ended_at_15 = end >= 0; });
  simgrid.run(clock, network, link_paths, 0);
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
  const auto ends =
      end_times({link_of(10_GBps)}, {{LinkId(0)}}, {{0, 1e9, 0_s}, {0, 0.2e9, 40_ms}});
  EXPECT_NEAR(ends[0], 0.120, kPicosecond);
  EXPECT_NEAR(ends[1], 0.080, kPicosecond);
}

TEST(FlowNetwork, AFlowThatComesWhenAnotherEndsIsAlone) {
  const auto ends = end_times({link_of(10_GBps)}, {{LinkId(0)}}, {{0, 1e9, 0_s}, {0, 1e9, 100_ms}});
  EXPECT_NEAR(ends[0], 0.100, kPicosecond);
  EXPECT_NEAR(ends[1], 0.200, kPicosecond);
}

TEST(FlowNetwork, SimGridStartsWhenALinkIsFullAndNotBefore) {
  // Two flows of 1 GB through links of 4 GB/s to one of 10 GB/s, again and again in one process.
  const Link own = link_of(4_GBps);
  const std::vector<Link> links{own, own, own, link_of(10_GBps)};
  const std::vector<std::vector<LinkId>> paths{
      {LinkId(0), LinkId(3)}, {LinkId(1), LinkId(3)}, {LinkId(2), LinkId(3)}};
  const std::vector<TestFlow> two{{0, 1e9, 0_s}, {1, 1e9, 0_s}};
  for (int i = 0; i < 2; ++i) EXPECT_EQ(end_times(links, paths, two), (std::vector{0.25, 0.25}));
  EXPECT_FALSE(simgrid_has_started());
  // Three need 12 GB/s and have a third of 10 each.
  const auto ends = end_times(links, paths, {{0, 1e9, 0_s}, {1, 1e9, 0_s}, {2, 1e9, 0_s}});
  EXPECT_NEAR(ends[2], 0.3, kPicosecond);
  EXPECT_TRUE(simgrid_has_started());
  EXPECT_EQ(end_times(links, paths, two), (std::vector{0.25, 0.25}));
}

TEST(FlowNetwork, OneFlowEndsTheSolitudeOfTwoOthers) {
  // Two flows alone on links of 10 GB/s for 50 ms (0.5 GB each); the third crosses both links and
  // moves its 0.1 GB in 20 ms at 5 GB/s, as they do; their last 0.4 GB take 40 ms.
  const LinkId left(0);
  const LinkId right(1);
  const auto ends =
      end_times({link_of(10_GBps), link_of(10_GBps)}, {{left}, {right}, {left, right}},
                {{0, 1e9, 0_s}, {1, 1e9, 0_s}, {2, 0.1e9, 50_ms}});
  EXPECT_NEAR(ends[0], 0.110, kPicosecond);
  EXPECT_NEAR(ends[1], 0.110, kPicosecond);
  EXPECT_NEAR(ends[2], 0.070, kPicosecond);
}

TEST(FlowNetwork, FlowsThatOtherLinksHoldDownShareALinkUntilItIsFull) {
  // Three flows come through links of 4 GB/s of their own to one of 10 GB/s. Two leave room there:
  // 1 GB in 250 ms, of which 150 ms (0.6 GB) are over when the third comes. From then on each has a
  // third of the link; the last 0.4 GB of the first two take 120 ms, until 270 ms. The third has
  // 0.4 GB by then, and its last 0.4 GB have 4 GB/s: until 370 ms.
  const LinkId common(3);
  const Link own = link_of(4_GBps);
  const auto ends = end_times({own, own, own, link_of(10_GBps)},
                              {{LinkId(0), common}, {LinkId(1), common}, {LinkId(2), common}},
                              {{0, 1e9, 0_s}, {1, 1e9, 0_s}, {2, 0.8e9, 150_ms}});
  EXPECT_NEAR(ends[0], 0.270, kPicosecond);
  EXPECT_NEAR(ends[1], 0.270, kPicosecond);
  EXPECT_NEAR(ends[2], 0.370, kPicosecond);
}

TEST(FlowNetwork, AFlowBesideOneThatAFullLinkSlowsDownIsAsFastAsAlone) {
  // The first two share a link of 10 GB/s; the second also crosses one of 20 GB/s beside the third,
  // which its own link holds down to 10 GB/s: 10 + 10 do not fill it. Half the pace for the first
  // two, 1 GB in 200 ms; the third takes 100 ms.
  const LinkId narrow(0), wide(1), own(2);
  const auto ends = end_times({link_of(10_GBps), link_of(20_GBps), link_of(10_GBps)},
                              {{narrow}, {narrow, wide}, {wide, own}},
                              {{0, 1e9, 0_s}, {1, 1e9, 0_s}, {2, 1e9, 0_s}});
  EXPECT_NEAR(ends[0], 0.200, kPicosecond);
  EXPECT_NEAR(ends[1], 0.200, kPicosecond);
  EXPECT_NEAR(ends[2], 0.100, kPicosecond);
}

TEST(FlowNetwork, ALimitHoldsForAFlowAloneAndWhereItMeetsAnother) {
  // 1 GB at 10 GB/s, from 20 ms on at most 2 GB/s: 0.2 + 0.2 GB until 120 ms. There a flow of 0.4
  // GB comes and gets the other 8 GB/s for 50 ms. At 200 ms (0.56 GB done) the limit is lifted.
  const std::vector<Link> links{link_of(10_GBps)};
  const LinkPaths link_paths(links, {{LinkId(0)}, {LinkId(0)}}, {true, false});
  SimGridRun simgrid;
  SimClock clock;
  FlowNetwork network(link_paths, clock);
  double limited = 0, other = 0;
  clock.at(0_s, [&] { network.start(PathId(0), 1e9, [&] { limited = clock.now().value(); }); });
  clock.at(20_ms, [&] { network.limit(PathId(0), 2_GBps); });
  clock.at(120_ms, [&] { network.start(PathId(1), 0.4e9, [&] { other = clock.now().value(); }); });
  clock.at(200_ms, [&] { network.limit(PathId(0), LinkPaths::kNoLimit); });
  simgrid.run(clock, network, link_paths, 0);
  EXPECT_NEAR(other, 0.170, kPicosecond);
  EXPECT_NEAR(limited, 0.200 + 0.044, kPicosecond);
}

/// The same fluid by hand: at every start and end, the link that gives each of its flows least is
/// divided among them, then the next one, until every flow has a rate.
class FluidByHand {
 public:
  FluidByHand(const std::vector<Link>& links, const std::vector<std::vector<LinkId>>& paths,
              const std::vector<TestFlow>& flows)
      : links_(links), paths_(paths), flows_(flows) {
    for (const TestFlow& flow : flows) left_.push_back(flow.bytes);
  }

  std::vector<double> end_times() {
    std::vector<double> ends(flows_.size(), -1);
    for (double now = 0; std::ranges::find(ends, -1) != ends.end();) {
      const std::vector<double> rates = rates_at(now, ends);
      double next = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < flows_.size(); ++i) {
        if (rates[i] > 0) next = std::min(next, now + left_[i] / rates[i]);
        if (flows_[i].start.value() > now) next = std::min(next, flows_[i].start.value());
      }
      for (std::size_t i = 0; i < flows_.size(); ++i) {
        if (rates[i] == 0) continue;
        left_[i] -= rates[i] * (next - now);
        if (left_[i] < 1e-3) ends[i] = next;
      }
      now = next;
    }
    return ends;
  }

 private:
  const std::vector<LinkId>& path(std::size_t flow) const {
    return paths_[static_cast<std::size_t>(flows_[flow].path)];
  }
  /// Bytes per second; 0 for flows that do not run.
  std::vector<double> rates_at(double now, const std::vector<double>& ends) const {
    std::vector<double> rates(flows_.size());
    std::vector<double> spare;
    for (const Link& link : links_) spare.push_back(link.bandwidth.value());
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < flows_.size(); ++i)
      if (flows_[i].start.value() <= now && ends[i] < 0) open.push_back(i);
    while (!open.empty()) {
      const auto [tightest, share] = tightest_of(spare, open);
      std::erase_if(open, [&, tightest = tightest, share = share](std::size_t flow) {
        if (std::ranges::count(path(flow), LinkId(tightest)) == 0) return false;
        rates[flow] = share;
        for (const LinkId link : path(flow)) spare[static_cast<std::size_t>(link.index())] -= share;
        return true;
      });
    }
    return rates;
  }
  std::pair<int, double> tightest_of(const std::vector<double>& spare,
                                     const std::vector<std::size_t>& open) const {
    std::pair<int, double> tightest{-1, std::numeric_limits<double>::infinity()};
    for (std::size_t link = 0; link < spare.size(); ++link) {
      double crossings = 0;
      for (const std::size_t flow : open)
        crossings +=
            static_cast<double>(std::ranges::count(path(flow), LinkId(static_cast<int>(link))));
      if (crossings > 0 && spare[link] / crossings < tightest.second)
        tightest = {static_cast<int>(link), spare[link] / crossings};
    }
    return tightest;
  }

  const std::vector<Link>& links_;
  const std::vector<std::vector<LinkId>>& paths_;
  const std::vector<TestFlow>& flows_;
  std::vector<double> left_;
};

/// Six links of 1 to 4 GB/s, twelve paths of one to three of them, forty flows of up to 10 MB that
/// start within 20 ms: often alone, often on links that leave room, often on full ones.
void expect_random_flows_end_as_by_hand(unsigned seed) {
  std::mt19937 random(seed);
  const auto up_to = [&random](int most) {
    return std::uniform_int_distribution<int>(1, most)(random);
  };
  std::vector<Link> links;
  for (int i = 0; i < 6; ++i) links.push_back(link_of(1_GBps * up_to(4)));
  std::vector<std::vector<LinkId>> paths(12);
  for (std::vector<LinkId>& path : paths)
    for (int i = up_to(3); i > 0; --i) path.emplace_back(up_to(6) - 1);
  std::vector<TestFlow> flows;
  for (int i = 0; i < 40; ++i)
    flows.push_back({up_to(12) - 1, up_to(10'000) * 1e3, 1_us * up_to(20'000)});
  const auto by_hand = FluidByHand(links, paths, flows).end_times();
  const auto ends = end_times(links, paths, flows);
  for (std::size_t i = 0; i < flows.size(); ++i) EXPECT_NEAR(ends[i], by_hand[i], 1e-9) << i;
}

class RandomFlows : public testing::TestWithParam<unsigned> {};

TEST_P(RandomFlows, EndWhereAFluidComputedByHandEndsThem) {
  expect_random_flows_end_as_by_hand(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFlows, testing::Range(1U, 13U));

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
