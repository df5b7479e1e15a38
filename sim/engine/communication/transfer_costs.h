#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/plan/device_load.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// What a collective or message costs, and the links that it takes.
struct TransferCost {
  Seconds latency;
  double bytes_per_link = 0;
  Seconds solo_time;
  std::vector<LinkId> links;
  DeviceLoad load;  ///< on each of its GPUs; nothing where kernels are not slowed
};

/// collective_cost() for the groups of a job, most of which are alike. Groups that are the same but
/// for the numbers of their nodes cost the same as long as they meet no link of the fabric: inside
/// one node, or behind a plain switch. Those are computed once.
class TransferCosts {
 public:
  explicit TransferCosts(const TimedProgram& timed);

  /// `gpus` of the topology. `ring_shift`: every one sends `call.bytes` to the next.
  TransferCost of(const CollectiveCall& call, std::span<const int> gpus, bool ring_shift = false);

 private:
  using Key = std::vector<std::int64_t>;  ///< the call, and the ranks with their nodes renumbered
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  TransferCost compute(const CollectiveCall& call, std::span<const int> ranks,
                       bool ring_shift) const;
  std::vector<int> nodes_of(std::span<const int> ranks) const;

  const TimedProgram& timed_;
  CollectiveTuning tuning_;
  bool nodes_are_alike_;
  int links_of_node_;
  std::unordered_map<Key, TransferCost, KeyHash> known_;
};

}  // namespace tessera
