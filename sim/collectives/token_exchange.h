#pragma once

#include <span>
#include <vector>

#include "sim/collectives/collective.h"

namespace tessera {

/// Bytes from every rank to every other, [n * n], of tokens that go to experts drawn with equal
/// chances, spread evenly over the n `ranks`; `call.bytes` arrive at each rank. A token goes once
/// to each node that holds one of its experts, to the rank with the sender's place there, which
/// passes it on to each GPU of the node that needs it. Sources: DeepEP README, normal kernels;
/// Megatron-Core transformer/moe/fused_a2a.py.
std::vector<Bytes> token_bytes(const Topology& topology, const CollectiveCall& call,
                               std::span<const int> ranks);

/// Cost of `call`, whose `tokens` name experts. It occupies the library's multiprocessors, which
/// copy what goes over NVLink.
CollectiveCost token_exchange_cost(const Topology& topology, const CollectiveCall& call,
                                   std::span<const int> ranks, const CollectiveTuning& tuning);

}  // namespace tessera
