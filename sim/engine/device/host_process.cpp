#include "sim/engine/device/host_process.h"

namespace tessera {

void HostProcess::live_on(SharedLinks& simgrid, const std::string& name, int gpu) {
  if (!all_launched_) actor_ = simgrid.create_actor(name, gpu);
}

// The host need not sleep through each launch: between two waits nothing depends on it but the
// dates at which its launches reach the device (launch_dates.h).
void HostProcess::launch(std::int32_t after, Seconds since) {
  const StageLaunches& launches = gpu_.queues().launches;
  if (waits_begun_ == waits()) {
    const auto ops = static_cast<std::int32_t>(launches.host_time.size());
    gpu_.launch(launch_run(after, since, ops - 1, launches), ops);
    all_launched_ = true;
    if (actor_ != nullptr) actor_->end();
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
