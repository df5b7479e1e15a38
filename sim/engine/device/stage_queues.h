#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/plan/timed_program.h"
#include "sim/trace/launch_dates.h"

namespace tessera {

/// What the hosts of a stage submit, and its ops by stream; all its ranks share them.
struct StageQueues {
  std::array<std::vector<std::int32_t>, kStreamCount> of_stream;  ///< ops in order of submission
  /// By op: its number among the stage's collectives of the same group, counted from 0; -1 for the
  /// other ops. Members of a communicator match their collectives by it.
  std::vector<std::int32_t> sequence;
  StageLaunches launches;
  // Where all streams but those of copies share one hardware queue:
  std::vector<std::int32_t> queued_from;  ///< by op, and one past the end: the first op from it on
                                          ///< that goes through the queue; the number of ops: none
  std::vector<char> holds_up_another;  ///< by op: the one behind it in the queue could start while
                                       ///< it still runs
};

StageQueues queues_of(const TimedProgram& timed, const RankProgram& stage);

}  // namespace tessera
