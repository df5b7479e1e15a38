#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hw/topology/topology.h"
#include "hw/units/quantity.h"

namespace tessera {

enum class CollectiveKind : std::uint8_t {
#include "configs/schema/words/collective_kind.inc"
};

/// NCCL's, besides `pairwise` (what its grouped sends come to) and `hierarchical` (rings inside the
/// nodes around rings between them, as frameworks build them from several calls).
enum class CollectiveAlgorithm : std::uint8_t {
#include "configs/schema/words/collective_algorithm.inc"
};
enum class CollectiveProtocol : std::uint8_t {
#include "configs/schema/words/collective_protocol.inc"
};

/// Whose formulas choose between algorithms.
enum class NcclTuner : std::uint8_t {
#include "configs/schema/words/nccl_tuner.inc"
};

/// Tokens of an all-to-all that travel once for each GPU with one of their experts, not once for
/// each expert, and between nodes once for each node (token_exchange.h). No experts: none do.
struct TokenSpread {
  std::int64_t experts = 0;  ///< of all ranks together
  std::int64_t choices = 0;  ///< experts of a token
  int multiprocessors = 0;   ///< that the library's kernels take

  bool operator==(const TokenSpread&) const = default;
};

/// A collective and what the user has fixed of it, as NCCL_ALGO and NCCL_PROTO would.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;  ///< nccl-tests convention: all_reduce, broadcast, send_recv = buffer; all_gather =
                ///< received buffer; reduce_scatter, all_to_all = sent buffer per rank
  std::optional<CollectiveAlgorithm> algorithm = std::nullopt;
  std::optional<CollectiveProtocol> protocol = std::nullopt;
  bool reduces_in_switch = true;  ///< false for data that NVLS and SHARP do not reduce (int8 sums)
  NcclTuner tuner = NcclTuner::current;
  /// Where nothing is reduced and one node holds all ranks, copy engines move the bytes instead of
  /// a kernel (NCCL_CTA_POLICY_ZERO of NCCL 2.28); elsewhere it changes nothing.
  bool copy_engines = false;
  TokenSpread tokens = {};  ///< `bytes` is then what arrives at a rank
};

/// Bytes of the buffers that cross one link; what the protocol adds to them is not counted.
struct LinkLoad {
  LinkId link;
  double bytes = 0;
};

/// What a collective takes from each of its GPUs while it runs.
struct GpuUse {
  int channels = 0;         ///< thread blocks of the collective's kernel; none by copy engines
  int multiprocessors = 0;  ///< that they occupy
  double memory_bytes = 0;  ///< read and written in the device memory
};

/// What one collective does to the network: after `latency`, `bytes_per_link` cross every link of
/// `links` together (one coupled flow, at the rate of the slowest link). Alone it takes `latency +
/// bytes_per_link / slowest`.
///
/// Where all links carry the same (full meshes, NVSwitch ports, one ring over PCIe),
/// `bytes_per_link` is what each really carries. Where they differ (a cube mesh's double bundles,
/// NVLink ports beside NICs), it is what the slowest link carries when the link that limits the
/// collective is busy all the time: the time alone stays exact, and faster links count as less
/// loaded than they are. `loads` has the bytes of each link.
struct CollectiveCost {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  CollectiveProtocol protocol = CollectiveProtocol::simple;
  Seconds latency;            ///< launch, steps, filling the pipeline; no link is busy
  double bytes_per_link = 0;  ///< fractional: a ring sends 2(n-1)/n of the buffer
  double protocol_share = 1;  ///< share of a link's rate that protocol and algorithm reach, in (0,
                              ///< 1]; `bytes_per_link` is already divided by it
  std::vector<LinkId> links;  ///< each link once, ascending
  std::vector<LinkLoad> loads;  ///< the same links
  LinkId bottleneck;            ///< the link that is busy longest
  Seconds lower_bound;          ///< time in which its load crosses it at its usable rate
  Seconds solo_time;            ///< with nothing else on the links
  GpuUse gpu;
};

class CollectiveTuning;

/// Cost of `call` over `ranks` (GPU numbers of the topology), as NCCL runs it: algorithm and
/// protocol are what its tuner picks where `call` leaves them open, time is what `tuning` says of
/// the choice. Zero ranks, one rank or no bytes cost nothing. Throws InputError for an algorithm or
/// protocol that NCCL does not run on this collective or group.
CollectiveCost collective_cost(const Topology& topology, const CollectiveCall& call,
                               std::span<const int> ranks, const CollectiveTuning& tuning);

/// The same with the constants that are shipped.
CollectiveCost collective_cost(const Topology& topology, const CollectiveCall& call,
                               std::span<const int> ranks);
CollectiveCost collective_cost(const Topology& topology, CollectiveKind kind, Bytes bytes,
                               std::span<const int> ranks);

/// An uneven all-to-all: `sent[i * n + j]` are the bytes from rank i to rank j of the n `ranks`;
/// `copy_engines` as of CollectiveCall.
CollectiveCost all_to_all_cost(const Topology& topology, std::span<const Bytes> sent,
                               std::span<const int> ranks, const CollectiveTuning& tuning,
                               bool copy_engines = false);

}  // namespace tessera
