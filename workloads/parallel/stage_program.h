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
/// The first layer of `blocks`: of weight gradients alone, which embeddings have none of apart, the
/// last block. The end's where there is none.
int first_layer(const ModelGraph& graph, const StageBlocks& blocks);
/// Layers of the parts of `graph`: its blocks but the two ends. A model of one block has none.
std::vector<int> layers_of_parts(const ModelGraph& graph, const StepOptions& step);

/// `program` with the arithmetic of its segments and their runs.
Program with_counted_flops(Program program);

/// The programs of pipeline stages `stages`, in that order, with the segments that they run: passes
/// in the order of the schedule and messages as `plan_pipeline` has them. A Program without blocks
/// and arithmetic; build_program() makes the whole of it. With several `micro_batches`, all stages
/// with so many each, one number after the other; with none, the step's own.
Program build_stages(const ModelGraph& graph, const StepOptions& step,
                     const std::vector<int>& stages,
                     const std::vector<std::int64_t>& micro_batches = {});

}  // namespace tessera
