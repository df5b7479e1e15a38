#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/engine/communication/communication_plan.h"
#include "sim/engine/network/transfers.h"

namespace tessera {

/// A stream that takes part in a collective.
class CollectiveMember {
 public:
  virtual int rank() const = 0;
  /// All members have joined.
  virtual void collective_started() = 0;
  /// The last member had joined at `all_joined`.
  virtual void collective_ended(Seconds all_joined, int last_rank) = 0;
  /// Time that the collective would take if this member's GPU alone slowed it, over its time alone.
  virtual double stretch_of_collectives() const = 0;
  /// Has the processor fetch what the end of a collective changes beside the member itself.
  virtual void prefetch() const = 0;

 protected:
  ~CollectiveMember() = default;
};

/// Where the members of communicators meet: the last one to join starts the collective, all leave
/// together, and the member with the busiest memory sets the pace.
class CollectiveBoard {
 public:
  CollectiveBoard(const CommunicationPlan& plan, Transfers& transfers);

  /// `member` joins the `sequence`-th collective (in the order of its program) of its communicator.
  /// Collectives of one member never match by arrival: that order could differ between ranks.
  void join(CollectiveMember& member, const PlannedTransfer& collective, std::int32_t sequence);
  /// The stretch of a member has changed.
  void change_pace(const PlannedTransfer& collective, std::int32_t sequence);
  /// Members that still have to join, as "gpu 1, gpu 3".
  std::string missing(const PlannedTransfer& collective, std::int32_t sequence) const;

 private:
  struct Meeting {
    std::int32_t sequence = 0;
    int communicator = 0;
    std::vector<CollectiveMember*> joined;
    bool has_started = false;
    Seconds all_joined;
    double stretch = 1;
    PacedWork work;
  };

  int communicator_of(const PlannedTransfer& collective) const {
    return plan_.folding().communicator_of(collective.communicator);
  }
  /// Null where nobody came yet.
  Meeting* find(int communicator, std::int32_t sequence) const;
  Meeting& add(int communicator, std::int32_t sequence);
  void start(Meeting& met, const Transfer& transfer);
  void release(Meeting& met);
  static void visit_joined(const Meeting& met, auto&& visit);
  static double stretch_of(const Meeting& met);

  const CommunicationPlan& plan_;
  Transfers& transfers_;
  std::deque<Meeting> all_;                      ///< at addresses that stay
  std::vector<std::vector<Meeting*>> meetings_;  ///< under way, by communicator: one or two of each
  std::vector<Meeting*> spare_;                  ///< empty ones that keep their memory
};

}  // namespace tessera
