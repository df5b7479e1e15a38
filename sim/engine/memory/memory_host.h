#pragma once

#include <algorithm>

#include "sim/engine/clock/sim_clock.h"
#include "sim/engine/communication/communication_plan.h"
#include "sim/engine/memory/memory_ledger.h"
#include "sim/engine/network/transfers.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// What memory pressure sees of its GPU.
struct MemoryHost {
  int rank;
  const RankProgram& program;
  const TimedProgram& timed;
  SimClock& clock;
  MemoryLedger& ledger;
  const CommunicationPlan& plan;
  Transfers& transfers;
  Action room_changed;  ///< called as often as bytes have left or come back

  const MemoryLimit& limit() const { return timed.memory_limit; }
  std::int32_t ops() const { return static_cast<std::int32_t>(program.ops.size()); }
  const ProgramOp& op(std::int32_t op) const { return program.ops[static_cast<std::size_t>(op)]; }
  bool runs_kernels(std::int32_t op) const { return this->op(op).kind == OpKind::kernels; }
  /// Of the kernels of `op` in the program's order, which the host has launched ahead.
  Seconds first_time(std::int32_t op) const {
    return timed.duration_of(rank, op, this->op(op).segment);
  }
  /// Of the kernels of `op` when they run again, alone; at least what the host needs to launch
  /// them.
  Seconds rerun_time(std::int32_t op) const {
    return std::max(first_time(op), timed.segment_of(rank, this->op(op).segment).host_time);
  }
  /// Highest memory of `op` above that before it.
  Bytes taken_by(std::int32_t op) const {
    const ProgramOp& taking = this->op(op);
    if (taking.kind != OpKind::kernels) return taking.allocated;
    return taking.allocated + timed.program.segment(taking.segment).peak_above_start;
  }
  /// Memory behind `op` above that before it.
  Bytes net_of(std::int32_t op) const {
    const ProgramOp& taking = this->op(op);
    const Bytes besides = taking.allocated - taking.freed;
    if (taking.kind != OpKind::kernels) return besides;
    return besides + timed.program.segment(taking.segment).net_memory;
  }
};

}  // namespace tessera
