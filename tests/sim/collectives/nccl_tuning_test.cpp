#include "sim/collectives/nccl_tuning.h"

#include "tests/hw/boxes.h"

namespace tessera {
namespace {

constexpr auto kAllReduce = CollectiveKind::all_reduce;

RingShape a100_ring() {
  RingShape ring;
  ring.ranks = 8;
  ring.architecture = Architecture::ampere;
  ring.bus_bandwidth = 240_GBps;
  return ring;
}

ProtocolPrice price_of(CollectiveProtocol protocol, const RingShape& ring,
                       CollectiveKind kind = kAllReduce) {
  for (const ProtocolPrice& price : protocol_prices(ring, kind)) {
    if (price.protocol == protocol) return price;
  }
  ADD_FAILURE() << "protocol is not enabled";
  return {};
}

TEST(NcclTuning, RingLatencyIsBasePlusSteps) {
  const RingShape ring = a100_ring();  // 14 steps on NVLink
  EXPECT_NEAR(price_of(CollectiveProtocol::ll, ring).latency.value(), (6.6 + 14 * 0.6) * 1e-6,
              1e-12);
  EXPECT_NEAR(price_of(CollectiveProtocol::ll128, ring).latency.value(), (14 + 14 * 1.9) * 1e-6,
              1e-12);
  EXPECT_NEAR(price_of(CollectiveProtocol::simple, ring).latency.value(), (8.4 + 14 * 3.4) * 1e-6,
              1e-12);
}

TEST(NcclTuning, LlIsCappedByGeneration) {
  RingShape ring = a100_ring();
  EXPECT_NEAR(price_of(CollectiveProtocol::ll, ring).share, 87.7 / 240, 1e-12);
  ring.bus_bandwidth = 100_GBps;  // half of it is below the cap
  EXPECT_EQ(price_of(CollectiveProtocol::ll, ring).share, 0.5);
  ring.bus_bandwidth = 370.8_GBps;
  ring.architecture = Architecture::hopper;
  EXPECT_NEAR(price_of(CollectiveProtocol::ll, ring).share, 141 / 370.8, 1e-12);
}

TEST(NcclTuning, Ll128NeedsVoltaAndNvlink) {
  RingShape ring = a100_ring();
  EXPECT_EQ(protocol_prices(ring, kAllReduce).size(), 3u);
  ring.path = PathClass::relay;
  EXPECT_EQ(protocol_prices(ring, kAllReduce).size(), 3u);
  ring.path = PathClass::pcie;
  EXPECT_EQ(protocol_prices(ring, kAllReduce).size(), 2u);
  ring.path = PathClass::nvlink;
  ring.architecture = Architecture::pascal;
  EXPECT_EQ(protocol_prices(ring, kAllReduce).size(), 2u);
}

TEST(NcclTuning, RelayedRingsPayPcieLatency) {
  RingShape ring = a100_ring();
  ring.path = PathClass::relay;
  EXPECT_NEAR(price_of(CollectiveProtocol::ll, ring).latency.value(), (6.6 + 14 * 1.0) * 1e-6,
              1e-12);
}

TEST(NcclTuning, StepsBetweenNodesCostNetworkLatency) {
  RingShape ring = a100_ring();
  ring.ranks = 16;
  ring.nodes = 2;
  ring.nic_latency = 0.6_us;
  // 30 steps, 2 of them over the network; handing over to the network takes at least 1 us a step.
  EXPECT_NEAR(price_of(CollectiveProtocol::ll, ring).latency.value(),
              (6.6 + 28 * 1.0 + 2 * (2.7 + 0.6)) * 1e-6, 1e-12);
  // Simple: the NIC twice, and the plateau factor of 1.4.
  EXPECT_NEAR(price_of(CollectiveProtocol::simple, ring).latency.value(),
              1.4 * (8.4 + 28 * 3.4 + 2 * (14 + 1.2)) * 1e-6, 1e-12);
}

TEST(NcclTuning, OneGpuPerNodePaysTheTreeRowOfTheNetwork) {
  RingShape ring = a100_ring();
  ring.ranks = ring.nodes = 2;
  EXPECT_NEAR(price_of(CollectiveProtocol::ll, ring).latency.value(), (6.6 + 2 * 5.0) * 1e-6,
              1e-12);
}

TEST(NcclTuning, BroadcastIsOneStepWhereAllChannelsShareAnOrder) {
  RingShape ring = a100_ring();
  const auto latency = [&] {
    return price_of(CollectiveProtocol::simple, ring, CollectiveKind::broadcast).latency.value();
  };
  EXPECT_NEAR(latency(), (8.4 + 3.4) * 1e-6, 1e-12);
  ring.same_order = false;
  EXPECT_NEAR(latency(), (8.4 + 8 * 4.0) * 1e-6, 1e-12);
}

TEST(NcclTuning, SmallMessagesTakeLlAndLargeOnesSimple) {
  const Topology topology(boxes::alone(boxes::h100_mesh()));
  const std::vector<int> ranks = {0, 1, 2, 3};
  const auto protocol = [&](Bytes bytes) {
    return collective_cost(topology, kAllReduce, bytes, ranks).protocol;
  };
  EXPECT_EQ(protocol(1_KiB), CollectiveProtocol::ll);
  // LL: 10.2 us + 1.5 S / 141 GB/s; LL128: 25.4 us + 1.5 S / 341 GB/s: equal at 2.4 MB.
  EXPECT_EQ(protocol(2_MiB), CollectiveProtocol::ll);
  EXPECT_EQ(protocol(3_MiB), CollectiveProtocol::ll128);
  // Simple: 28.8 us + 1.5 S / 370.8 GB/s: equal to LL128 at 9.7 MB.
  EXPECT_EQ(protocol(8_MiB), CollectiveProtocol::ll128);
  EXPECT_EQ(protocol(16_MiB), CollectiveProtocol::simple);
}

}  // namespace
}  // namespace tessera
