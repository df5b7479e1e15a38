#pragma once

#include <vector>

#include "workloads/parallel/pass_library.h"
#include "workloads/program/program.h"
#include "workloads/step_options.h"

namespace tessera {

/// Positions in `ModelGraph::order` that a model chunk runs.
struct StageBlocks {
  int begin = 0;
  int end = 0;  ///< one past the last
};
/// Part `part` of a model whose parts have `layers` layers, which lie between an embedding and a
/// head; the embedding goes to the first part, the head to the last.
StageBlocks blocks_of_part(const ModelGraph& graph, int part, const std::vector<int>& layers);
/// Layers of the parts of `graph`: its blocks but the two ends. A model of one block has none.
std::vector<int> layers_of_parts(const ModelGraph& graph, const StepOptions& step);

/// Sets the arithmetic of `program` from its segments and their runs.
void count_flops(Program& program);

/// The program of pipeline stage `stage`: passes in the order of the schedule and messages as
/// `plan_pipeline` has them.
RankProgram build_stage_program(PassLibrary& library, const StepOptions& step, int stage);

}  // namespace tessera
