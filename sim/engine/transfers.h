#pragma once

#include "sim/engine/chunked_rings.h"
#include "sim/engine/communication_plan.h"
#include "sim/engine/flow_network.h"
#include "sim/engine/sim_clock.h"

namespace tessera {

/// Carries transfers out: waits for the delay, then lets the bytes flow.
class Transfers {
 public:
  Transfers(SimClock& clock, FlowNetwork& network) : clock_(clock), network_(network) {}

  Seconds now() const { return clock_.now(); }
  /// `transfer` must outlive the run; `on_end` runs when the last byte has arrived.
  void start(const Transfer& transfer, Action on_end) {
    if (transfer.steps > 0) {
      clock_.after(transfer.delay, [this, &transfer, on_end = std::move(on_end)] {
        start_chunked_rings(transfer, network_, clock_, on_end);
      });
      return;
    }
    if (!transfer.path.valid()) {
      clock_.after(transfer.delay, std::move(on_end));
      return;
    }
    clock_.after(transfer.delay, [this, &transfer, on_end = std::move(on_end)] {
      network_.start(transfer.path, transfer.bytes, on_end);
    });
  }

 private:
  SimClock& clock_;
  FlowNetwork& network_;
};

}  // namespace tessera
