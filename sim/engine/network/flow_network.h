#pragma once

#include <cstddef>
#include <functional>
#include <simgrid/s4u.hpp>
#include <utility>
#include <vector>

#include "sim/engine/clock/sim_clock.h"
#include "sim/engine/network/platform.h"

namespace tessera {

/// Starts flows on a Platform and tells when they end. Flows share every link max-min fairly.
class FlowNetwork {
 public:
  FlowNetwork(const Platform& platform, SimClock& clock);
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  /// Sends `bytes` over every link of `path` and then runs `on_end`. SimGrid counts whole bytes, at
  /// least one: bytes are rounded, which shifts the end by at most half a byte's time (1 byte for
  /// an empty flow). Only from maestro, that is, from an action of the clock.
  void start(PathId path, double bytes, Action on_end);
  /// `on_flow(path, bytes)` runs when a flow begins, and with 0 bytes when it ends.
  void watch(std::function<void(PathId path, double bytes)> on_flow) {
    on_flow_ = std::move(on_flow);
  }
  /// From now on, no flow over `path`, one of PlannedNetwork::has_limit, is faster than `rate`.
  void limit(PathId path, BytesPerSecond rate);

 private:
  struct Flow {
    simgrid::s4u::CommPtr comm;
    Seconds earliest_end;
    Action on_end;
    PathId path;
  };

  void flow(PathId path, double bytes, Action on_end);
  Seconds earliest_end(PathId path, double bytes) const;
  void finish(std::size_t slot);
  void set_limit(PathId path, BytesPerSecond rate);

  const Platform& platform_;
  SimClock& clock_;
  std::vector<Flow> flows_;  ///< by slot; a running flow carries its slot + 1 as SimGrid user data
  std::vector<std::size_t> free_slots_;
  std::vector<BytesPerSecond> limits_;  ///< by path
  std::function<void(PathId, double)> on_flow_;
};

}  // namespace tessera
