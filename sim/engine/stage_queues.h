#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/program.h"

namespace tessera {

/// The ops of a stage by stream; all its ranks share them.
struct StageQueues {
  std::array<std::vector<std::int32_t>, kStreamCount> of_stream;  ///< ops in order of submission
  /// By op: its number among the stage's collectives of the same group, counted from 0; -1 for the
  /// other ops. Members of a communicator match their collectives by it.
  std::vector<std::int32_t> sequence;
};

StageQueues queues_of(const RankProgram& stage);

}  // namespace tessera
