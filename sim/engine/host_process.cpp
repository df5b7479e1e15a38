#include "sim/engine/host_process.h"

#include <simgrid/simix.hpp>
#include <utility>

namespace tessera {

// The host need not sleep through each launch: between two waits nothing depends on it but the
// dates at which its launches reach the device (launch_dates.h). It blocks at the wait.
void HostProcess::run() {
  const StageLaunches& launches = gpu_.queues().launches;
  std::int32_t after = -1;
  Seconds since;
  for (const std::int32_t awaited : launches.waits) {
    gpu_.launch(launch_run(after, since, awaited, launches), awaited + 1);
    synchronize(awaited);
    after = awaited;
    since = gpu_.records()[static_cast<std::size_t>(awaited)].end;
  }
  const auto ops = static_cast<std::int32_t>(launches.host_time.size());
  gpu_.launch(launch_run(after, since, ops - 1, launches), ops);
  submit();
}

// Devices change only in actions of the clock: an exception in this call would end in the actor.
void HostProcess::submit() {
  const bool woken = std::exchange(awake_, false);
  simgrid::kernel::actor::simcall_answered([this, woken] {
    if (woken) gpu_.context().clock.release();
    gpu_.context().clock.after(Seconds(0), [this] { gpu_.advance(); });
  });
}

void HostProcess::synchronize(std::int32_t op) {
  gpu_.when_ended(op, [this] {
    gpu_.context().clock.occupy();
    ended_->release();
  });
  submit();
  ended_->acquire();
  awake_ = true;
}

}  // namespace tessera
