#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "hw/topology/topology.h"
#include "sim/plan/device_load.h"
#include "sim/plan/timed_segment.h"
#include "sim/scenario/collective_settings.h"
#include "workloads/program/program.h"

namespace tessera {

/// How long the collectives of a rank take with nothing else on the links.
class CollectiveTimes {
 public:
  /// Both must outlive the object.
  CollectiveTimes(const Topology& topology, const CollectiveSettings& settings)
      : topology_(topology), settings_(settings), tuning_(settings.tuning()) {}

  /// Collective `op` of `rank`, which runs on the GPU of its number. Of one layout alone.
  Seconds alone(const ProgramOp& op, int rank, const Program& program) {
    return known(op, rank, program).time;
  }
  /// What it takes from kernels beside it.
  DeviceLoad load(const ProgramOp& op, int rank, const Program& program) {
    return known(op, rank, program).load;
  }
  /// What `rank` sends by `op`, to the rank of its place in the other stage.
  Seconds message(const ProgramOp& op, int rank, const Program& program);

 private:
  struct Known {
    Seconds time;
    DeviceLoad load;
  };

  const Known& known(const ProgramOp& op, int rank, const Program& program);
  Seconds message_cost(const ProgramOp& op, int from, int to) const;

  const Topology& topology_;
  const CollectiveSettings& settings_;
  CollectiveTuning tuning_;
  std::map<std::array<int, 2>, std::vector<int>> groups_;    ///< by kind and rank
  std::map<std::array<std::int64_t, 4>, Known> known_;       ///< by kind, group, bytes, rank
  std::map<std::array<std::int64_t, 3>, Seconds> messages_;  ///< by rank, stage, bytes
};

/// One pass of a micro-batch over a block.
struct BlockPass {
  std::int32_t micro_batch = -1;
  std::int32_t layer = -1;  ///< -1: of no layer
  bool backward = false;
  Seconds span;
};

/// What a stage cannot do without, whatever the other stages do. The host, messages, and what
/// collectives cost the kernels beside them count as nothing.
struct StageBound {
  /// In order. A block's kernels, and the collectives of tensor, context and expert groups that
  /// they wait for: the next block's kernels queue behind them, so that the spans add up.
  std::vector<BlockPass> passes;
  Seconds closing;  ///< behind the last pass: gradients that are summed in one piece, optimizer
  Seconds data;     ///< its collectives over replicas, one after another on their busiest stream
  Bytes memory;     ///< highest use: what is there all the time, and what segments allocate

  Seconds passes_time() const;
};

/// As `rank` runs it. `segments` are those of the program, timed; `static_memory` is there all the
/// time.
StageBound stage_bound(const Program& program, const RankProgram& stage, int rank,
                       const std::vector<TimedSegment>& segments, Bytes static_memory,
                       CollectiveTimes& times);

}  // namespace tessera
