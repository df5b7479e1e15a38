#include "sim/engine/device/host_process.h"

#include <simgrid/simix.hpp>

namespace tessera {

// Devices change only in actions of the clock: an exception in this call would end in the actor.
void HostProcess::run() {
  const bool sleeps = waits() > 0;
  simgrid::kernel::actor::simcall_answered(
      [this] { gpu_.context().clock.after(Seconds(0), [this] { launch(-1, Seconds(0)); }); });
  if (sleeps) all_launched_->acquire();
}

// The host need not sleep through each launch: between two waits nothing depends on it but the
// dates at which its launches reach the device (launch_dates.h).
void HostProcess::launch(std::int32_t after, Seconds since) {
  const StageLaunches& launches = gpu_.queues().launches;
  if (waits_begun_ == waits()) {
    const auto ops = static_cast<std::int32_t>(launches.host_time.size());
    gpu_.launch(launch_run(after, since, ops - 1, launches), ops);
    if (after >= 0) all_launched_->release();
    return gpu_.advance();
  }
  const std::int32_t awaited = launches.waits[waits_begun_++];
  gpu_.launch(launch_run(after, since, awaited, launches), awaited + 1);
  gpu_.when_ended(awaited, [this, awaited] {
    SimClock& clock = gpu_.context().clock;
    clock.after(Seconds(0), [this, awaited] { launch(awaited, gpu_.context().clock.now()); });
  });
  gpu_.advance();
}

}  // namespace tessera
