#include "sim/engine/host_process.h"

#include <simgrid/simix.hpp>
#include <utility>

namespace tessera {

// The host need not sleep through each launch: between two waits nothing depends on it but the
// dates at which its launches reach the device. It writes these down and blocks at the wait.
void HostProcess::run() {
  Seconds host_time;
  const auto op_count = static_cast<std::int32_t>(gpu_.program().ops.size());
  for (std::int32_t op = 0; op < op_count; ++op) {
    host_time += launch_time(gpu_.op(op));
    gpu_.launch(host_time);
    if (!waits_for_end(gpu_.op(op))) continue;
    synchronize(op);
    host_time = gpu_.record(op).end;
  }
  submit();
}

Seconds HostProcess::launch_time(const ProgramOp& op) const {
  const TimedProgram& timed = gpu_.context().timed;
  if (op.kind != OpKind::kernels) return timed.communication_host_time;
  return timed.segments[static_cast<std::size_t>(op.segment.index())].host_time;
}

bool HostProcess::waits_for_end(const ProgramOp& op) const {
  if (op.host_sync) return true;
  return op.kind == OpKind::kernels && gpu_.context().timed.program.segment(op.segment).host_sync;
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
