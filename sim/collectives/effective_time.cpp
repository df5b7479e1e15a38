#include "sim/collectives/effective_time.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tessera {
namespace {

using Algorithm = CollectiveAlgorithm;
using Protocol = CollectiveProtocol;

/// NCCL's chunk of a channel: half of its 4 MiB buffer.
constexpr double kChunk = 2.0 * 1024 * 1024;
/// NVLS: 8 heads of 128 KiB per channel (enqueue.cc).
constexpr double kNvlsChunk = 8 * 128.0 * 1024;

bool is_hopper(const RingShape& shape) {
  return shape.architecture >= Architecture::hopper && shape.architecture < Architecture::cdna1;
}

bool is_blackwell(const RingShape& shape) {
  return shape.architecture == Architecture::blackwell ||
         shape.architecture == Architecture::blackwell_ultra;
}

/// Of latencies inside a node that NVLink joins, besides those of Hopper.
double blackwell_factor(const RingShape& shape, const CollectiveConstants& c) {
  return is_blackwell(shape) && shape.path == PathClass::nvlink ? c.latency_blackwell : 1;
}

/// RCCL on GPUs of AMD: what a generation does to the tuner's latencies is fitted to NVIDIA's
/// alone.
bool is_amd(const RingShape& shape) {
  return shape.architecture >= Architecture::cdna1 && shape.architecture <= Architecture::cdna4;
}

double base_factor(const RingShape& shape, const CollectiveConstants& c) {
  if (is_amd(shape)) return 1;
  return is_hopper(shape) ? c.base_hopper * blackwell_factor(shape, c) : c.base_before_hopper;
}

double step_factor(const RingShape& shape, Protocol protocol, const CollectiveConstants& c) {
  double factor =
      is_hopper(shape) ? c.step_hopper * blackwell_factor(shape, c) : c.step_before_hopper;
  if (is_amd(shape)) factor = 1;
  if (shape.path != PathClass::nvlink) factor = c.step_pcie;
  if (protocol == Protocol::simple) factor *= c.step_simple;
  if (protocol == Protocol::ll128) factor *= c.step_ll128;
  return factor;
}

Seconds base_of(const LatencyTerms& terms, Protocol protocol, const RingShape& shape,
                const CollectiveConstants& c) {
  return terms.base * (base_factor(shape, c) * (protocol == Protocol::simple ? c.base_simple : 1));
}

int tree_levels(int nodes) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(nodes))) - 1;
}

double ring_share(Protocol protocol, const RingShape& shape, const CollectiveConstants& c) {
  if (protocol == Protocol::simple) return 1;
  if (protocol == Protocol::ll128) return c.share_ll128;
  return c.share_ll > 0 ? c.share_ll : std::min(0.5, ll_cap(shape) / shape.bus_bandwidth);
}

/// First round of chunks over all channels, at the rate of the ring; less for fewer bytes.
Seconds first_round(Seconds piece, double round_bytes, BytesPerSecond rate) {
  return std::min(piece, Seconds(round_bytes / rate.value()));
}

/// `between` steps cross from node to node. Where a ring was timed over many nodes, a piece passes
/// each of them once a round.
Seconds time_between_nodes(const RingShape& shape, const LatencyTerms& terms, int between,
                           double rounds) {
  if (shape.nodes == 1) return Seconds(0);
  return std::max((terms.between + terms.nic) * between,
                  shape.ring_latency * (rounds * shape.nodes));
}

TimeParts ring_time(const RingShape& shape, const CollectiveCall& call, Protocol protocol,
                    Seconds on_links, const CollectiveConstants& c) {
  const LatencyTerms terms = ring_latency_terms(protocol, shape);
  const int steps = ring_steps(call.kind, shape.ranks);
  const bool broadcast = call.kind == CollectiveKind::broadcast;
  const int between = broadcast ? shape.nodes - 1 : ring_steps(call.kind, shape.nodes);
  const int counted = broadcast ? shape.ranks - 1 : steps;
  const Seconds step = std::max(terms.inside * step_factor(shape, protocol, c), terms.overhead);
  TimeParts parts;
  const double rounds = static_cast<double>(counted) / (shape.ranks - 1);
  parts.latency = base_of(terms, protocol, shape, c) + step * (counted - between) +
                  time_between_nodes(shape, terms, between, rounds);
  const Seconds piece = on_links / steps;
  const double extra = protocol == Protocol::simple ? c.extra_simple
                       : protocol == Protocol::ll   ? c.extra_ll
                                                    : 0;
  parts.transfer = (on_links + piece * extra) / ring_share(protocol, shape, c);
  if (protocol != Protocol::simple) return parts;
  const double round = most_channels(shape, Algorithm::ring) * kChunk;
  parts.fill = first_round(piece, round, shape.bus_bandwidth) * c.fill_simple;
  return parts;
}

/// `on_links` already counts the buffer up and down.
TimeParts tree_time(const RingShape& shape, const CollectiveCall& call, Protocol protocol,
                    Seconds on_links, const CollectiveConstants& c) {
  const LatencyTerms terms = tree_latency_terms(protocol, shape);
  TimeParts parts;
  parts.latency = base_of(terms, protocol, shape, c) +
                  terms.inside * (step_factor(shape, protocol, c) * 2 * (shape.gpus_per_node - 1)) +
                  (terms.between + terms.nic) * (2.0 * tree_levels(shape.nodes));
  constexpr double kTreeShare = 0.92;  // tuning.cc
  constexpr double kTreeLlShare = 0.25;
  const double protocol_share = protocol == Protocol::simple  ? 1
                                : protocol == Protocol::ll128 ? c.share_ll128
                                                              : kTreeLlShare;
  parts.transfer = on_links / (kTreeShare * protocol_share);
  if (protocol != Protocol::simple) return parts;
  const Seconds piece(static_cast<double>(call.bytes.value()) / shape.ranks /
                      (shape.bus_bandwidth.value() * kTreeShare));
  const double round = most_channels(shape, Algorithm::tree) * kChunk;
  parts.fill = first_round(piece, round, shape.bus_bandwidth) * (2 * c.fill_simple);
  return parts;
}

TimeParts nvls_time(const RingShape& shape, const CollectiveCall& call,
                    const NcclExpectation& choice, Seconds on_links, const CollectiveConstants& c) {
  const bool tree = choice.algorithm == Algorithm::nvls_tree;
  const BytesPerSecond rate = tree ? nvls_tree_bandwidth(shape) : nvls_bandwidth(shape);
  constexpr Seconds kLatency = 25_us;  // tuning.cc
  constexpr Seconds kNetworkStep = 20.9_us;
  TimeParts parts;
  parts.latency = kLatency * (c.nvls_latency * blackwell_factor(shape, c)) +
                  kNetworkStep * (2.0 * tree_levels(shape.nodes));
  parts.transfer = std::max(call.bytes / rate, on_links);
  const double round = most_channels(shape, Algorithm::nvls) * kNvlsChunk * (tree ? 2 : 1);
  parts.fill = first_round(call.bytes / rate, round, rate) * c.nvls_fill;
  return parts;
}

Seconds total(const TimeParts& parts) {
  return parts.latency + parts.transfer + parts.fill;
}

/// Grouped sends with one protocol. Between nodes the network sets the pace, without what NVLink
/// loses.
TimeParts pairwise_time(const RingShape& shape, const CollectiveCall& call, Protocol protocol,
                        Seconds on_links, const CollectiveConstants& c) {
  const bool lone = call.kind == CollectiveKind::send_recv;
  const bool ll = protocol == Protocol::ll;
  const int peers = lone ? 1 : shape.ranks - 1;
  const LatencyTerms terms = ring_latency_terms(protocol, shape);
  TimeParts parts;
  parts.latency = terms.base * base_factor(shape, c);
  if (!lone) {
    parts.latency = base_of(terms, protocol, shape, c) +
                    terms.inside * (step_factor(shape, protocol, c) * (ll ? 2 : 1));
  }
  if (shape.nodes > 1) parts.latency += terms.between + terms.nic;
  const double own_copy = lone ? 0 : (ll ? c.extra_ll : c.extra_simple);
  parts.transfer = on_links * ((peers + own_copy) / peers);
  if (ll) {
    const bool as_in_ring = lone || shape.nodes > 1 || c.pairwise_share_ll <= 0;
    const double share = as_in_ring ? ring_share(Protocol::ll, shape, c) : c.pairwise_share_ll;
    parts.transfer = parts.transfer / share;
  } else if (!lone && shape.nodes == 1) {
    parts.transfer = parts.transfer / c.pairwise_share;
    if (is_blackwell(shape)) parts.transfer = parts.transfer / c.pairwise_blackwell;
    const double round = most_channels(shape, Algorithm::pairwise) * kChunk;
    parts.fill = first_round(parts.transfer, round, shape.bus_bandwidth) * c.pairwise_fill;
  }
  return parts;
}

/// Bytes to one peer up to which NCCL sends them with LL inside a node: NCCL_P2P_LL_THRESHOLD
/// (16 KiB) per channel, channels rounded up to a power of two (init.cc, enqueue.cc).
double most_ll_bytes(const RingShape& shape) {
  constexpr double kThreshold = 16.0 * 1024;
  const int channels = most_channels(shape, Algorithm::pairwise);
  return kThreshold * std::bit_ceil(static_cast<unsigned>(channels));
}

/// With the protocol that `call` names, or NCCL's. An all-to-all in a node changes to Simple by its
/// size alone; larger ones take at least as long as the largest with LL, so that more bytes never
/// take less time. Elsewhere the faster protocol counts.
TimeParts pairwise_time(const RingShape& shape, const CollectiveCall& call, Seconds on_links,
                        const CollectiveConstants& c) {
  const auto price = [&](Protocol protocol, double share_of_bytes) {
    return pairwise_time(shape, call, protocol, on_links * share_of_bytes, c);
  };
  if (call.protocol) {
    return price(*call.protocol == Protocol::ll ? Protocol::ll : Protocol::simple, 1);
  }
  if (call.kind == CollectiveKind::all_to_all && shape.nodes == 1) {
    const double of_a_peer = static_cast<double>(call.bytes.value()) / shape.ranks;
    const double by_ll = most_ll_bytes(shape) / of_a_peer;
    if (by_ll >= 1) return price(Protocol::ll, 1);
    const TimeParts largest = price(Protocol::ll, by_ll);
    const TimeParts simple = price(Protocol::simple, 1);
    return total(simple) < total(largest) ? largest : simple;
  }
  const TimeParts ll = price(Protocol::ll, 1);
  const TimeParts simple = price(Protocol::simple, 1);
  return total(ll) < total(simple) ? ll : simple;
}

/// tuning.cc, rows of CollNet and PAT; their bandwidth is that of the links.
TimeParts collnet_time(const RingShape& shape, bool direct, Seconds on_links) {
  const int gpus = shape.gpus_per_node;
  const double direct_us = 2 * (std::min(1, gpus - 1) * 3.7 + (gpus - 1) * 0.4) + 31;
  const double chain_us = 2 * (gpus - 1) * 2.8 + 30;
  return {.latency = Seconds((direct ? direct_us : chain_us) * 1e-6),
          .transfer = on_links / 0.92,
          .fill = Seconds(0)};
}

TimeParts pat_time(const RingShape& shape, Seconds on_links, const CollectiveConstants& c) {
  const double us = 8 * base_factor(shape, c) +
                    std::log2(shape.ranks) * (14 + shape.nic_latency.value() * 1e6) / 3.5 +
                    2.8 * shape.ranks;
  return {.latency = Seconds(us * 1e-6), .transfer = on_links / 0.75, .fill = Seconds(0)};
}

/// Rings in the nodes and between them, one after the other.
TimeParts hierarchical_time(const RingShape& shape, const CollectiveCall& call, Protocol protocol,
                            const CollectiveConstants& c) {
  const auto bytes = static_cast<double>(call.bytes.value());
  TimeParts total;
  const auto add = [&](RingShape part, BytesPerSecond rate) {
    if (part.ranks < 2) return;
    part.bus_bandwidth = rate;
    const double traffic = bytes * ring_steps(call.kind, part.ranks) / part.ranks;
    const TimeParts time = ring_time(part, call, protocol, Seconds(traffic / rate.value()), c);
    total.latency += time.latency;
    total.transfer += time.transfer;
    total.fill += time.fill;
  };
  RingShape inside = shape;
  inside.ranks = shape.gpus_per_node;
  inside.nodes = 1;
  add(inside, shape.inside_bandwidth);
  RingShape between = shape;
  between.ranks = shape.nodes;
  between.gpus_per_node = 1;
  if (shape.nodes > 1) add(between, shape.network_bandwidth);
  return total;
}

}  // namespace

TimeParts effective_time(const RingShape& shape, const CollectiveCall& call,
                         const NcclExpectation& choice, Seconds on_links,
                         const CollectiveConstants& constants) {
  switch (choice.algorithm) {
    case Algorithm::ring:
      return ring_time(shape, call, choice.protocol, on_links, constants);
    case Algorithm::tree:
      return tree_time(shape, call, choice.protocol, on_links, constants);
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return nvls_time(shape, call, choice, on_links, constants);
    case Algorithm::pairwise:
      return pairwise_time(shape, call, on_links, constants);
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
      return collnet_time(shape, choice.algorithm == Algorithm::collnet_direct, on_links);
    case Algorithm::pat:
      return pat_time(shape, on_links, constants);
    case Algorithm::hierarchical:
      return hierarchical_time(shape, call, choice.protocol, constants);
  }
  return {};
}

}  // namespace tessera
