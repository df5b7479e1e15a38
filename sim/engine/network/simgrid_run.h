#pragma once

#include <functional>
#include <memory>

#include "sim/engine/clock/sim_clock.h"
#include "sim/engine/network/flow_network.h"
#include "sim/engine/network/shared_links.h"

namespace tessera {

/// Runs what is posted to a clock: by the clock alone, and on SimGrid from when a flow first fills
/// a link (docs/decisions/0090-simgrid-starts-when-a-link-fills.md). To be declared ahead of the
/// clock and the network, which may hold flows of SimGrid when they go.
class SimGridRun {
 public:
  /// Once. `on_simgrid`, where given, runs when SimGrid has started, to create actors on the hosts
  /// of the `gpus`. Throws std::logic_error if SimGrid is needed and has run in this process.
  void run(SimClock& clock, FlowNetwork& network, const LinkPaths& paths, int gpus,
           const std::function<void(SharedLinks&)>& on_simgrid = nullptr);

 private:
  std::unique_ptr<SharedLinks> links_;
};

}  // namespace tessera
