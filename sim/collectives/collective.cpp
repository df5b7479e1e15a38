#include "sim/collectives/collective.h"

#include "sim/collectives/nccl_tuning.h"
#include "sim/collectives/ring_paths.h"

namespace tessera {
namespace {

/// Bytes that every rank sends along the ring; a broadcast passes the whole buffer on.
double ring_traffic(CollectiveKind kind, Bytes bytes, int ranks) {
  return static_cast<double>(bytes.value()) * ring_steps(kind, ranks) / ranks;
}

Seconds time_alone(const ProtocolPrice& price, double traffic, const RingShape& ring) {
  return price.latency + Seconds(traffic / (ring.bus_bandwidth.value() * price.share));
}

ProtocolPrice cheapest_protocol(CollectiveKind kind, double traffic, const RingShape& ring) {
  const std::vector<ProtocolPrice> prices = protocol_prices(ring, kind);
  ProtocolPrice best = prices.front();
  for (const ProtocolPrice& price : prices) {
    if (time_alone(price, traffic, ring) < time_alone(best, traffic, ring)) best = price;
  }
  return best;
}

}  // namespace

CollectiveCost collective_cost(const Topology& topology, CollectiveKind kind, Bytes bytes,
                               std::span<const int> ranks) {
  CollectiveCost cost;
  if (ranks.size() < 2 || bytes.value() == 0) return cost;
  const RingPaths paths = ring_paths(topology, ranks);
  const double traffic = ring_traffic(kind, bytes, paths.shape.ranks);
  const ProtocolPrice price = cheapest_protocol(kind, traffic, paths.shape);
  cost.protocol = price.protocol;
  cost.latency = price.latency;
  cost.protocol_share = price.share;
  cost.bytes_per_link = traffic / price.share * (paths.slowest_link / paths.shape.bus_bandwidth);
  for (const LinkShare& link : paths.links) cost.links.push_back(link.link);
  cost.solo_time = cost.latency + Seconds(cost.bytes_per_link / paths.slowest_link.value());
  return cost;
}

}  // namespace tessera
