#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/remat/graph.h"

namespace tessera::remat {

/// What a step of a schedule does. Operators run one at a time in the order of the schedule; the
/// copies of each direction form one queue beside them.
enum class Action : std::uint8_t {
  compute,   ///< run an operator; allocates its outputs
  drop,      ///< free a tensor
  copy_out,  ///< queue the copy to the host, which may last for ever; the tensor stays
  release,   ///< wait for the end of the tensor's copy to the host, then free it
  copy_in    ///< allocate the tensor and queue its copy from the host; readers wait for the end
};

struct Step {
  Action action = Action::compute;
  std::int32_t id = 0;  ///< operator of `compute`, tensor of the others
  bool operator==(const Step&) const = default;
};

using Schedule = std::vector<Step>;

/// The connection to host memory.
struct HostLink {
  double bytes_per_ns = 0;  ///< per direction, > 0; 12 GB/s = 12
  Nanoseconds latency = 0;  ///< of every copy
  bool full_duplex = true;  ///< false: both directions share one queue

  /// Whole nanoseconds, rounded up.
  Nanoseconds copy_time(ByteCount bytes) const;
  bool operator==(const HostLink&) const = default;
};

/// What a schedule costs, exactly.
struct ReplayResult {
  Nanoseconds time = 0;  ///< until the last operator and the last copy into a kept tensor ended
  Nanoseconds recompute = 0;      ///< spent on operators that had run before
  Nanoseconds stall = 0;          ///< operators waiting for copies, or slower beside them
  Nanoseconds forward_stall = 0;  ///< of that, ahead of Graph::first_backward()
  Nanoseconds awaited = 0;        ///< operators waiting for transfers, the last one's end included
  Nanoseconds forward_awaited = 0;  ///< likewise
  ByteCount peak = 0;               ///< device bytes, static bytes included
  std::size_t peak_step = 0;        ///< of the schedule
  ByteCount host_peak = 0;          ///< bytes of all host copies, which are never freed
  std::int64_t copied = 0;          ///< bytes over the link, both directions
};

/// Runs `schedule` step by step. Memory is counted at the position in the schedule, which is never
/// less than at any moment in time: a copy-in holds its memory from its step on although the copy
/// starts later, a copy-out until its `release`. Copies beside an operator that takes the link too
/// (LinkUse) and that operator last longer, and so do copies and transfers beside each other.
/// Operators allocate outputs and workspace at their start; workspace goes at their end.
/// `stage_peaks`, where not null, gets one peak for every interval between first executions (ops +
/// 1 values, with static bytes). Throws std::logic_error for a schedule that reads what is not
/// there, never runs an operator, runs first executions out of program order, or loses a kept
/// tensor.
ReplayResult replay(const Graph& graph, const Schedule& schedule,
                    const std::optional<HostLink>& link,
                    std::vector<ByteCount>* stage_peaks = nullptr);

}  // namespace tessera::remat
