#pragma once

#include <vector>

#include "sim/collectives/collective.h"
#include "sim/collectives/nccl_tuning.h"

namespace tessera {

/// What NCCL's tuner thinks of one way to run a collective.
struct NcclExpectation {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  CollectiveProtocol protocol = CollectiveProtocol::simple;
  Seconds latency;   ///< part of `time` that does not depend on bandwidth
  Seconds transfer;  ///< the rest
  Seconds time() const { return latency + transfer; }
};

/// Every algorithm and protocol that NCCL's tuner compares for `call` on a group, with its formula
/// `latency + bytes / bandwidth`. The bandwidth is that of NCCL's search for channels, which knows
/// certain speeds only. Without SHARP in the description of a cluster, CollNet is not among them.
/// `call.tuner` v2_8: with the bandwidths of NCCL 2.8, which expects two nodes to be as fast as one
/// and trees to reach half of a ring, so that it runs large all-reduces of two nodes as rings.
/// Source: NVIDIA/nccl 2.30.7 src/graph/tuning.cc, search.cc.
std::vector<NcclExpectation> nccl_expectations(const RingShape& shape, const CollectiveCall& call);

/// The fastest of them that `call` allows. Algorithms that the tuner does not compare (pairwise,
/// hierarchical, CollNet) are taken as `call` names them, with its protocol or Simple. Throws
/// InputError where nothing is allowed.
NcclExpectation nccl_choice(const RingShape& shape, const CollectiveCall& call);

/// The choice first, then the ways that the tuner would prefer if the links of the node were
/// slower: more latency and less transfer. Where one of these is faster in effect, it is what a
/// prediction takes, so that neither more bandwidth nor fewer bytes ever take longer. Over several
/// nodes, where NVLink and network change the choice independently, every allowed way follows; of
/// the old tuner, every allowed way of the algorithm chosen.
std::vector<NcclExpectation> nccl_candidates(const RingShape& shape, const CollectiveCall& call);

/// What NCCL's search makes of a rate inside a node: the most that channels of one of its speeds
/// add up to. 370.8 GB/s of an H100 become 360.
BytesPerSecond searched_bandwidth(BytesPerSecond links, Architecture architecture);

/// Algorithm bandwidth of an all-reduce over NVLS; zero where the group has none.
BytesPerSecond nvls_bandwidth(const RingShape& shape);
/// The same of NVLSTree.
BytesPerSecond nvls_tree_bandwidth(const RingShape& shape);

/// Channels of a message: NCCL takes fewer for small ones (enqueue.cc).
int nccl_channels(const RingShape& shape, CollectiveAlgorithm algorithm,
                  CollectiveProtocol protocol, Bytes bytes);
/// Channels of a large message.
int most_channels(const RingShape& shape, CollectiveAlgorithm algorithm);

}  // namespace tessera
