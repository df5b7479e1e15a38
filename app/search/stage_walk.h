#pragma once

#include <vector>

#include "app/search/stage_bound.h"

namespace tessera {

/// What a stage waits for besides itself, at least.
struct StageSurroundings {
  Seconds before;  ///< its first pass
  Seconds behind;  ///< its last pass
};

/// What a walk may take for granted of the order in which ops are launched.
struct LaunchOrder {
  /// All streams share one hardware queue (cuda_device_max_connections: 1): no op starts before
  /// those launched ahead of it have, of kernels the last one.
  bool single_queue = false;
  /// A memory plan will gather parameters earlier within a backward pass, where a layer runs again.
  bool gathers_move = false;
};

/// When everything that `rank` runs in its stage is done at the earliest. Each op begins when its
/// stream and what it waits for are done, and takes as long as it takes alone; messages and copies
/// take no time. Streams are in order, so that nothing which the walk leaves out (hosts, contention
/// on links, other ranks) can make an op end sooner. What collectives beside kernels cost these is
/// added as far as it cannot be spared (hidden_collectives.h).
Seconds walked_stage(const Program& program, const RankProgram& stage, int rank,
                     const std::vector<TimedSegment>& segments, StageSurroundings around,
                     LaunchOrder order, CollectiveTimes& times);

/// When the last stage of a pipeline is done at the earliest: all of its stages walked in the same
/// way, beside each other. What receives a message waits until the other stage has sent it, alone
/// on its links.
Seconds walked_pipeline(const Program& program, const std::vector<TimedSegment>& segments,
                        LaunchOrder order, CollectiveTimes& times);

}  // namespace tessera
