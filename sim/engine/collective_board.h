#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/communication_plan.h"
#include "sim/engine/transfers.h"

namespace tessera {

/// Where the members of communicators meet: the last one to join starts the collective, and all
/// leave together.
class CollectiveBoard {
 public:
  /// Called when the collective ended, with the date at which its last member had joined, and its
  /// rank.
  using OnEnd = std::function<void(Seconds all_joined, int last_rank)>;

  CollectiveBoard(const CommunicationPlan& plan, Transfers& transfers);

  /// `rank` joins `collective`, the `sequence`-th (in the order of its program) of its
  /// communicator. Collectives of one member never match by arrival: that order could differ
  /// between ranks.
  void join(int rank, const ProgramOp& collective, std::int32_t sequence, OnEnd on_end);
  /// What `collective` takes from the GPU of `rank` from joining to its end.
  const DeviceLoad& load(int rank, const ProgramOp& collective) const;
  /// Members that `rank` still waits for, as "gpu 1, gpu 3".
  std::string missing(int rank, GroupKind group, std::int32_t sequence) const;

 private:
  struct Meeting {
    std::vector<int> joined;
    std::vector<OnEnd> on_end;
  };
  using Key = std::pair<int, std::int32_t>;  // communicator, sequence

  void start(Key key, const ProgramOp& collective);
  void release(Key key, Seconds all_joined);

  const CommunicationPlan& plan_;
  Transfers& transfers_;
  std::map<Key, Meeting> meetings_;  // only those under way
};

}  // namespace tessera
