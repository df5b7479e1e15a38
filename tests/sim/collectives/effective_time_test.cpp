#include "sim/collectives/effective_time.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

RingShape ring_of(Architecture architecture) {
  RingShape ring;
  ring.ranks = ring.gpus_per_node = 8;
  ring.architecture = architecture;
  ring.over_switch = true;
  ring.nvlinks = 18;
  ring.bus_bandwidth = ring.inside_bandwidth = 700_GBps;
  return ring;
}

TimeParts time_of(const RingShape& ring, CollectiveKind kind, CollectiveAlgorithm algorithm,
                  CollectiveProtocol protocol) {
  const CollectiveCall call{.kind = kind, .bytes = Bytes(std::int64_t{1} << 30)};
  const NcclExpectation choice{.algorithm = algorithm, .protocol = protocol};
  return effective_time(ring, call, choice, 1_ms, CollectiveConstants{});
}

TEST(EffectiveTime, LatenciesOfBlackwellAreHalfAsLongAgainAsHoppers) {
  using enum CollectiveAlgorithm;
  for (const CollectiveProtocol protocol : {CollectiveProtocol::ll, CollectiveProtocol::simple}) {
    const auto latency = [&](Architecture architecture) {
      return time_of(ring_of(architecture), CollectiveKind::all_gather, ring, protocol).latency;
    };
    EXPECT_NEAR(latency(Architecture::blackwell) / latency(Architecture::hopper), 1.5, 1e-9);
  }
  RingShape over_pcie = ring_of(Architecture::blackwell);
  over_pcie.path = PathClass::pcie;
  RingShape hopper_over_pcie = over_pcie;
  hopper_over_pcie.architecture = Architecture::hopper;
  const auto by_ring = [](const RingShape& shape) {
    return time_of(shape, CollectiveKind::all_gather, ring, CollectiveProtocol::simple).latency;
  };
  EXPECT_EQ(by_ring(over_pcie), by_ring(hopper_over_pcie));  // not of NVLink 5
}

TEST(EffectiveTime, WhatGenerationsOfNvidiaTakeSaysNothingOfAmd) {
  CollectiveConstants slow;
  slow.base_before_hopper = slow.step_before_hopper = 9;
  const CollectiveCall call{.kind = CollectiveKind::all_gather, .bytes = 8_B};
  const NcclExpectation choice{.algorithm = CollectiveAlgorithm::ring,
                               .protocol = CollectiveProtocol::ll};
  const auto latency = [&](Architecture architecture, const CollectiveConstants& constants) {
    return effective_time(ring_of(architecture), call, choice, Seconds(0), constants).latency;
  };
  // 6.6 us and seven steps of 0.6 (tuning.cc, ring, LL, NVLink)
  EXPECT_NEAR(latency(Architecture::cdna3, slow).value(), (6.6 + 7 * 0.6) * 1e-6, 1e-12);
  EXPECT_GT(latency(Architecture::ampere, slow), latency(Architecture::ampere, {}));
}

TEST(EffectiveTime, AnAllToAllOfBlackwellReachesFourFifthsOfTheRate) {
  const auto transfer = [](Architecture architecture) {
    return time_of(ring_of(architecture), CollectiveKind::all_to_all, CollectiveAlgorithm::pairwise,
                   CollectiveProtocol::simple)
        .transfer;
  };
  EXPECT_NEAR(transfer(Architecture::hopper) / transfer(Architecture::blackwell), 0.8, 1e-9);
}

}  // namespace
}  // namespace tessera
