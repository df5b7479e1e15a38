#pragma once

#include <utility>

#include "sim/engine/clock/paced_work.h"
#include "sim/engine/clock/sim_clock.h"
#include "sim/engine/network/chunked_run.h"
#include "sim/engine/network/flow_network.h"
#include "sim/engine/network/transfer.h"

namespace tessera {

/// Carries transfers out: waits for the delay, then lets the bytes flow.
class Transfers {
 public:
  Transfers(SimClock& clock, FlowNetwork& network) : clock_(clock), network_(network) {}

  Seconds now() const { return clock_.now(); }
  /// `transfer` must outlive the run; `on_end` runs when the last byte has arrived.
  void start(const Transfer& transfer, Action&& on_end) {
    if (!transfer.hops.empty()) {
      clock_.after(transfer.delay, [this, &transfer, on_end = std::move(on_end)]() mutable {
        start_chunked_run(transfer, network_, clock_, std::move(on_end));
      });
      return;
    }
    if (!transfer.path.valid()) {
      clock_.after(transfer.delay + transfer.moving, std::move(on_end));
      return;
    }
    clock_.after(transfer.delay, [this, &transfer, on_end = std::move(on_end)]() mutable {
      network_.start(transfer.path, transfer.bytes, std::move(on_end));
    });
  }

  /// The same for a transfer that the memories of its GPUs slow down, at first to `stretch` of its
  /// time alone. `work` is where it is done if it is no flow.
  void start_paced(const Transfer& transfer, double stretch, PacedWork& work, Action&& on_end) {
    if (transfer.is_closed_form()) {
      work.start(clock_, transfer.delay, transfer.moving, stretch, std::move(on_end));
      return;
    }
    limit(transfer, stretch);
    start(transfer, std::move(on_end));
  }
  void change_pace(const Transfer& transfer, double stretch, PacedWork& work) {
    if (transfer.is_closed_form()) return work.change(stretch);
    limit(transfer, stretch);
  }

 private:
  // Flows over one path at the same time have the same members, hence the same stretch.
  void limit(const Transfer& transfer, double stretch) {
    if (!transfer.path.valid() || transfer.load.bandwidth <= 0) return;
    network_.limit(transfer.path, stretch > 1 ? transfer.rate / stretch : LinkPaths::kNoLimit);
  }

  SimClock& clock_;
  FlowNetwork& network_;
};

}  // namespace tessera
