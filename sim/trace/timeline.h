#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/units/id.h"
#include "hw/units/quantity.h"
#include "sim/trace/huge_pages.h"
#include "sim/trace/rank_folding.h"
#include "workloads/program/program.h"

namespace tessera {

/// One op of one rank as it ran.
struct OpRecord {
  Seconds start;  ///< when the op left its queue; recv and collectives then wait for their peers
  Seconds end;
  Seconds transfer_start;       ///< collectives: when the last member had arrived; else = start
  std::int32_t op = 0;          ///< index in the rank's RankProgram::ops
  std::int32_t last_rank = -1;  ///< collectives: the member that arrived last; else -1
};
static_assert(sizeof(OpRecord) == 32, "large jobs have tens of millions: two fill a cache line");
using OpRecords = std::vector<OpRecord, HugePageAllocator<OpRecord>>;

/// Bytes in use on a rank from `time` on. A running segment counts with its peak.
struct MemorySample {
  std::int32_t rank = 0;
  Seconds time;
  Bytes used;
};

/// A copy that no program asked for: a tensor left the device, or came back, because memory ran
/// short.
struct PressureCopy {
  std::int32_t rank = 0;
  bool out = true;  ///< to host memory
  Bytes bytes;
  Seconds start, end;
};

/// Forward kernels that ran once more because memory had run short: `op` of the program, whose
/// results had been given up.
struct PressureRerun {
  std::int32_t rank = 0;
  std::int32_t op = 0;
  Bytes bytes;  ///< of the results that are there again
  Seconds start, end;
};

/// Time in which kernels could have begun had there been room, and what they read, on the device.
struct MemoryStall {
  std::int32_t rank = 0;
  std::int32_t op = 0;
  Seconds start, end;
};

/// What happened in one simulated step. Totally ordered: ops by (rank, op); memory by (rank, time,
/// sequence). Ranks that another one stands for have no ops and no samples of their own.
struct Timeline {
  OpRecords ops;
  std::vector<MemorySample> memory;
  std::vector<Bytes> peak_memory;  ///< per rank, also of those that others stand for; static memory
                                   ///< included
  std::vector<PressureCopy> pressure_copies;   ///< by rank and start
  std::vector<PressureRerun> pressure_reruns;  ///< likewise
  std::vector<MemoryStall> memory_stalls;      ///< likewise; reruns lie within
  RankFolding folding;
  Seconds step_time;  ///< end of the last op of any rank
};

}  // namespace tessera
