#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <simgrid/s4u.hpp>
#include <utility>
#include <vector>

#include "sim/engine/clock/paced_work.h"
#include "sim/engine/clock/sim_clock.h"
#include "sim/engine/network/platform.h"

namespace tessera {

/// Starts flows on a Platform and tells when they end. Flows share every link max-min fairly.
/// A flow with nobody else on its links needs no sharing: the clock alone brings up its end. SimGrid
/// takes over what is left of it when another one comes to one of its links.
class FlowNetwork {
 public:
  FlowNetwork(const Platform& platform, SimClock& clock);
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  /// Sends `bytes`, rounded to whole ones and at least one, over every link of `path` and then runs
  /// `on_end`. Only from maestro, that is, from an action of the clock.
  void start(PathId path, double bytes, Action on_end);
  /// `on_flow(path, bytes)` runs when a flow begins, and with 0 bytes when it ends.
  void watch(std::function<void(PathId path, double bytes)> on_flow) {
    on_flow_ = std::move(on_flow);
  }
  /// From now on, no flow over `path`, one of PlannedNetwork::has_limit, is faster than `rate`.
  void limit(PathId path, BytesPerSecond rate);

 private:
  /// From its start to its end at a slot of its own.
  struct Flow {
    PathId path;
    double bytes = 0;  ///< left when SimGrid takes it over
    Action on_end;
    PacedWork alone;  ///< seconds at the path's rate
    simgrid::s4u::CommPtr comm;
    Seconds earliest_end;
  };
  using Slot = std::int32_t;
  static constexpr Slot kNone = -1;
  struct LinkUse {
    int flows = 0;
    Slot alone = kNone;  ///< the flow that has the link for itself
  };
  struct Limit {
    BytesPerSecond rate = Platform::kNoLimit;
    BytesPerSecond in_simgrid = Platform::kNoLimit;
  };

  Slot new_slot();
  Flow& at(Slot slot) { return flows_[static_cast<std::size_t>(slot)]; }
  LinkUse& use_of(LinkId link) { return uses_[static_cast<std::size_t>(link.index())]; }
  Limit& limit_of(PathId path) { return limits_[static_cast<std::size_t>(path.index())]; }

  /// Enters the flow on its links. Whether it is the only one there.
  bool join(Slot slot);
  void leave(Slot slot);
  void run_alone(Slot slot);
  double stretch_on(PathId path) const;
  /// Of the flows that have a link of `path` for themselves.
  void end_solitude_on(PathId path);
  void give_to_simgrid(Slot slot);
  void tell_limit(PathId path, BytesPerSecond rate);
  Seconds earliest_end(PathId path, double bytes) const;
  void end_in_simgrid(Slot slot);
  void end(Slot slot);

  const Platform& platform_;
  SimClock& clock_;
  std::deque<Flow> flows_;  ///< by slot; SimGrid's user data of a flow is its slot + 1
  std::vector<Slot> free_slots_;
  std::vector<LinkUse> uses_;   ///< by link
  std::vector<Limit> limits_;  ///< by path
  std::function<void(PathId, double)> on_flow_;
};

}  // namespace tessera
