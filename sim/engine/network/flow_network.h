#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sim/engine/clock/paced_work.h"
#include "sim/engine/clock/sim_clock.h"
#include "sim/engine/network/shared_links.h"

namespace tessera {

/// Starts flows over paths and tells when they end. Flows share every link max-min fairly.
///
/// A link is full where its flows would need more than its bandwidth to be as fast as each is
/// alone. A flow on no full link is as fast as alone, whatever others do: the clock brings up its
/// end, and SimGrid need not know of it. Flows on full links share them in SimGrid, which takes
/// over what is left of those that were on one when it became full.
class FlowNetwork {
 public:
  /// `paths` have to outlive the network.
  FlowNetwork(const LinkPaths& paths, SimClock& clock);
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  /// Sends `bytes`, rounded to whole ones and at least one, over every link of `path` and then runs
  /// `on_end`. Only from maestro, that is, from an action of the clock.
  void start(PathId path, double bytes, Action on_end);
  /// `on_flow(path, bytes)` runs when a flow begins, and with 0 bytes when it ends.
  void watch(std::function<void(PathId path, double bytes)> on_flow) {
    on_flow_ = std::move(on_flow);
  }
  /// Where flows share full links; before the first of them goes there, that is, while the clock
  /// waits for SimGrid. Once.
  void share_on(SharedLinks& shared);
  /// From now on, no flow over `path`, one of LinkPaths::has_limit, is faster than `rate`.
  void limit(PathId path, BytesPerSecond rate);

 private:
  /// From its start to its end at a slot of its own.
  struct Flow {
    PathId path;
    double bytes = 0;  ///< left when SimGrid takes it over
    Action on_end;
    PacedWork unhindered;  ///< seconds at the path's rate
    std::unique_ptr<SharedLinks::Flow> in_simgrid;
    Seconds earliest_end;
  };
  using Slot = std::int32_t;
  struct LinkUse {
    int flows = 0;
    BytesPerSecond needed;         ///< for all flows to be as fast as each is alone
    std::vector<Slot> unhindered;  ///< none where the link is full
  };
  struct PathUse {
    BytesPerSecond limit = LinkPaths::kNoLimit;
    BytesPerSecond limit_in_simgrid = LinkPaths::kNoLimit;
    int flows_in_simgrid = 0;
  };

  Slot new_slot();
  Flow& at(Slot slot) { return flows_[static_cast<std::size_t>(slot)]; }
  LinkUse& use_of(LinkId link) { return links_[static_cast<std::size_t>(link.index())]; }
  PathUse& use_of(PathId path) { return paths_[static_cast<std::size_t>(path.index())]; }
  bool is_full(LinkId link);

  /// Enters the flow on its links. Whether none of them is full.
  bool join(Slot slot);
  void leave(Slot slot);
  void run_unhindered(Slot slot);
  void no_longer_unhindered(Slot slot);
  double stretch_on(PathId path);
  /// The flow, and those that are on its full links, share them from now on.
  void share_links_of(Slot slot);
  void give_to_simgrid(Slot slot);
  void tell_limit(PathId path, BytesPerSecond rate);
  Seconds earliest_end(PathId path, double bytes) const;
  void end_in_simgrid(Slot slot);
  void end(Slot slot);

  const LinkPaths& link_paths_;
  SharedLinks* shared_ = nullptr;  ///< null until SimGrid runs
  SimClock& clock_;
  std::deque<Flow> flows_;  ///< by slot
  std::vector<Slot> free_slots_;
  std::vector<LinkUse> links_;
  std::vector<PathUse> paths_;
  std::function<void(PathId, double)> on_flow_;
};

}  // namespace tessera
