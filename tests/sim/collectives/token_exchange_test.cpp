// Tokens once per node over the network, then once per GPU over NVLink.
#include "sim/collectives/token_exchange.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "sim/collectives/collective_tuning.h"
#include "tests/hw/boxes.h"

namespace tessera {
namespace {

ClusterSpec two_nodes() {
  NodeSpec node = boxes::node("DGX-H100", boxes::gpu("H100", Architecture::hopper, "9.0", 18), 8);
  node.interconnect = GpuInterconnect::nvswitch;
  node.nic_count = 8;
  node.nic_bandwidth = 50_GBps;
  node.nic_latency = 1_us;
  ClusterSpec cluster = boxes::alone(node);
  cluster.node_count = 2;
  return cluster;
}

class TokenExchange : public ::testing::Test {
 protected:
  static std::vector<int> first(int count) {
    std::vector<int> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  Topology topology_{two_nodes()};
};

constexpr std::int64_t kArriving = 16'000'000;

CollectiveCall call_of(std::int64_t experts, std::int64_t choices) {
  return {.kind = CollectiveKind::all_to_all,
          .bytes = Bytes(kArriving),
          .tokens = {.experts = experts, .choices = choices, .multiprocessors = 20}};
}

TEST_F(TokenExchange, OnOneNodeEveryRankSendsEveryOtherTheSame) {
  const std::vector<Bytes> sent = token_bytes(topology_, call_of(16, 2), first(8));
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < 8; ++j)
      EXPECT_EQ(sent[i * 8 + j], Bytes(i == j ? 0 : kArriving / 8)) << i << " " << j;
}

TEST_F(TokenExchange, BetweenNodesATokenTravelsOnceToTheRankInItsPlace) {
  // Two of 16 experts, one per rank. A rank meets 1 - 15/16 14/15 = 1/8 of all tokens, so 16 ranks
  // with T bytes of tokens receive 2 T each. A node of 8 meets 1 - 8/16 7/15 = 23/30 of them.
  const std::vector<Bytes> sent = token_bytes(topology_, call_of(16, 2), first(16));
  const std::int64_t tokens = kArriving / 2;
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 16; ++j) {
      const bool inside = i / 8 == j / 8;
      const bool in_place = i % 8 == j % 8;
      const std::int64_t expected = i == j     ? 0
                                    : inside   ? kArriving / 8
                                    : in_place ? tokens * 23 / 30
                                               : 0;
      EXPECT_NEAR(static_cast<double>(sent[i * 16 + j].value()), static_cast<double>(expected), 2);
    }
  }
}

TEST_F(TokenExchange, OnOneNodeItsMultiprocessorsSetThePace) {
  // 7/8 of what arrives leaves each of eight ranks; 20 multiprocessors send 328 GB/s, and a port
  // more.
  CollectiveCall call = call_of(16, 2);
  call.bytes = Bytes(80'000'000);
  const CollectiveCost cost = collective_cost(topology_, call, first(8));
  EXPECT_NEAR((cost.solo_time - cost.latency).value(), 70e6 / (20 * 16.4e9), 1e-9);
  call.tokens.multiprocessors = 10;
  EXPECT_NEAR((collective_cost(topology_, call, first(8)).solo_time - cost.latency).value(),
              70e6 / (10 * 16.4e9), 1e-9);
}

TEST_F(TokenExchange, WithManyChoicesTakesLessOfTheNetworkThanAnAllToAllOfAllRows) {
  // Eight of 128 experts over 16 ranks: 8 rows per token by NCCL, of which half change the node; at
  // most one copy of each token does here.
  const std::int64_t tokens = 4096, row = 2 * 2048;
  const CollectiveCall rows{.kind = CollectiveKind::all_to_all, .bytes = Bytes(8 * tokens * row)};
  CollectiveCall once = call_of(128, 8);
  const double met = 1 - 120.0 / 128 * 119 / 127 * 118 / 126 * 117 / 125 * 116 / 124 * 115 / 123 *
                             114 / 122 * 113 / 121;  // 8 experts of a rank
  once.bytes = Bytes(std::llround(16 * met * static_cast<double>(tokens * row)));
  const CollectiveCost by_rows = collective_cost(topology_, rows, first(16));
  const CollectiveCost by_tokens = collective_cost(topology_, once, first(16));
  EXPECT_NEAR(by_rows.lower_bound / by_tokens.lower_bound, 4, 0.1);
  EXPECT_EQ(by_tokens.gpu.multiprocessors, 20);
}

}  // namespace
}  // namespace tessera
