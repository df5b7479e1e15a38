#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/program/program.h"

namespace tessera {

/// What the segments of a stage make and free themselves, and nothing else of the stage sees: most
/// of the memory events of a step. Which free ends which allocation is found once a segment, not
/// once a run.
class SegmentTemporaries {
 public:
  SegmentTemporaries(const Program& program, const RankProgram& stage);

  /// By memory event of `segment`: the number of the event that allocates what it frees, its own
  /// where it allocates, -1 where it passes memory to or from others.
  std::span<const std::int32_t> of(SegmentId segment) const {
    return maker_[static_cast<std::size_t>(segment.index())];
  }

 private:
  std::vector<std::vector<std::int32_t>> maker_;  ///< by segment; empty: not of the stage
};

}  // namespace tessera
