#pragma once

#include "sim/remat/schedule.h"

namespace tessera::remat::test {

struct EventReplay {
  Nanoseconds time = 0;
  ByteCount peak = 0;  ///< of bytes allocated at any moment of the clock, static bytes included
};

/// Replays a schedule on the clock, independently of sim/remat's replay: every copy and operator
/// becomes an allocation and a free at its moment in time. Memory that is freed at a moment counts
/// no longer for what starts at that moment. Throws std::logic_error for a read of what is not
/// there at that moment.
EventReplay replay_events(const Graph& graph, const Schedule& schedule,
                          const std::optional<HostLink>& link);

}  // namespace tessera::remat::test
