#pragma once

#include <string>

#include "hw/units/quantity.h"
#include "sim/reliability/failure_model.h"

namespace tessera {

/// What watches a job, in place of the detection times that a file of failures states. 0: not
/// there.
struct Watch {
  /// Of a collective: notices every failure that stops the job. PyTorch's default for NCCL is
  /// 10 min (recalled: torch.distributed, default_pg_nccl_timeout).
  Seconds collective_timeout;
  /// Without a sign of life of a node's process: notices failures of gpu, hbm, host, power and
  /// software, which are taken to end it; behind a dead nic, link or switch the process lives on.
  Seconds heartbeat;
  /// Times the usual step without the end of one: notices every failure that stops the job, and a
  /// slow node where the slow step takes longer.
  double progress_steps = 0;

  bool any() const {
    return collective_timeout.value() > 0 || heartbeat.value() > 0 || progress_steps > 0;
  }
};

/// `of` with the detection time of the watch that notices it first; as stated where none does, and
/// for planned stops and silent corruption. `step`: of the healthy job.
FailureClass watched(FailureClass of, const Watch& watch, Seconds step);

/// The same of a recorded fault, whose component is not known: heartbeats do not count.
Seconds detection_of_recorded(const Watch& watch, Seconds step);

/// "time-out 10 min, heartbeat 30 s, 3 steps without progress".
std::string text_of(const Watch& watch);

}  // namespace tessera
