#pragma once

#include <cstdint>
#include <vector>

#include "workloads/program/program.h"

namespace tessera {

/// What the order of submission implies for the ops of a stage's program. All ranks of the stage
/// share it.
struct StageOrder {
  static constexpr std::int32_t kNoOp = -1;

  std::vector<std::int32_t> ahead_in_stream;  ///< by op: the one before it in its stream
  std::vector<std::int32_t> ahead_in_queue;   ///< by op: the one before it in the hardware queue
                                              ///< that streams may share; none of copies
  std::vector<std::int32_t> last_sync;        ///< by op: for which the host waited last before it
  std::vector<std::int32_t> compute_ops;      ///< those of the compute stream, ascending
};

StageOrder order_of(const RankProgram& stage, const Program& program);

}  // namespace tessera
