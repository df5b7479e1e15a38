#pragma once

#include "workloads/parallel/pass_library.h"
#include "workloads/program.h"
#include "workloads/step_options.h"

namespace tessera {

/// Positions in `ModelGraph::order` that a stage runs.
struct StageBlocks {
  int begin = 0;
  int end = 0;  ///< one past the last
};
/// Equal numbers of layers, which lie between an embedding and a head; the embedding goes to the
/// first stage, the head to the last.
StageBlocks blocks_of_stage(const ModelGraph& graph, int stage, int stages);

/// Sets the arithmetic of `program` from its segments and their runs.
void count_flops(Program& program);

/// The program of pipeline stage `stage`. Communication follows Megatron r0.5.0
/// (core/pipeline_parallel/schedules.py and p2p_communication.py): a device synchronization after
/// every transfer, and transfers in opposite directions between a forward and a backward pass
/// issued together.
RankProgram build_stage_program(PassLibrary& library, const StepOptions& step, int stage);

}  // namespace tessera
