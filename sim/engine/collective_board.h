#pragma once

#include <cstdint>
#include <functional>
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

  /// `rank` joins the `sequence`-th collective (in the order of its program) of its communicator.
  /// Collectives of one member never match by arrival: that order could differ between ranks.
  void join(int rank, const PlannedTransfer& collective, std::int32_t sequence, OnEnd on_end);
  /// Members that still have to join, as "gpu 1, gpu 3".
  std::string missing(const PlannedTransfer& collective, std::int32_t sequence) const;

 private:
  struct Meeting {
    std::int32_t sequence = 0;
    std::vector<int> joined;
    std::vector<OnEnd> on_end;
  };

  /// The meeting at `communicator`; an empty one where nobody came yet.
  Meeting& meeting(int communicator, std::int32_t sequence);
  void release(int communicator, std::int32_t sequence, Seconds all_joined);

  const CommunicationPlan& plan_;
  Transfers& transfers_;
  std::vector<std::vector<Meeting>> meetings_;  ///< under way, by communicator: one or two of each
  std::vector<Meeting> spare_;                  ///< empty ones that keep their memory
};

}  // namespace tessera
