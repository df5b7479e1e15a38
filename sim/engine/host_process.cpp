#include "sim/engine/host_process.h"

#include <simgrid/simix.hpp>
#include <utility>

namespace tessera {

// The host need not sleep through each launch: between two waits nothing depends on it but the
// dates at which its launches reach the device. It writes these down and blocks at the wait.
void HostProcess::run() {
  Seconds host_time;
  const StageQueues& queues = gpu_.queues();
  for (std::size_t op = 0; op < queues.launch_time.size(); ++op) {
    host_time += queues.launch_time[op];
    gpu_.launch(host_time);
    if (queues.host_waits[op] == 0) continue;
    const auto awaited = static_cast<std::int32_t>(op);
    synchronize(awaited);
    host_time = gpu_.record(awaited).end;
  }
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
