#pragma once

#include <vector>

#include "app/search/stage_bound.h"

namespace tessera {

/// When a stage is done at the earliest.
struct StageEnds {
  Seconds last_pass;  ///< with the kernels of its last pass
  Seconds all;        ///< with everything
};

/// Walks through everything that `rank` runs in its stage, op by op: each begins when its stream
/// and what it waits for are done, and takes as long as it takes alone; messages and copies take no
/// time, and the first pass begins at `first_pass`. Streams are in order, so that nothing which the
/// walk leaves out (hosts, contention, other ranks) can make an op end sooner.
StageEnds walked_stage(const Program& program, const RankProgram& stage, int rank,
                       const std::vector<TimedSegment>& segments, Seconds first_pass,
                       CollectiveTimes& times);

/// When the last stage of a pipeline is done at the earliest: all of its stages walked in the same
/// way, beside each other. What receives a message waits until the other stage has sent it, alone
/// on its links.
Seconds walked_pipeline(const Program& program, const std::vector<TimedSegment>& segments,
                        CollectiveTimes& times);

}  // namespace tessera
