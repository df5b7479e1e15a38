#pragma once

#include <string>
#include <vector>

#include "workloads/graph/block.h"
#include "workloads/model_spec.h"
#include "workloads/step_options.h"

namespace tessera {

constexpr int kNoLayer = -1;

/// A model as operator graphs, of one tensor-parallel rank and one micro-batch.
struct ModelGraph {
  std::vector<Block> blocks;  ///< distinct ones: embedding, layers, head
  std::vector<int> order;  ///< indices into `blocks` as forward runs them; backward is the reverse
  std::vector<int> layer_numbers;    ///< parallel to `order`; `kNoLayer` for the other blocks
  std::vector<int> blocks_of_parts;  ///< of `order`, by pipeline stage; empty: as layers are split
  TokenRouting tokens;               ///< Program::tokens
  Bytes shared_buffers;              ///< persistent memory that a rank holds once
  Bytes hidden_bytes;                ///< activation between two blocks
  Bytes tied_table_bytes;            ///< gradient of a tied embedding table; 0 = untied

  const Block& at(int position) const {
    return blocks[static_cast<std::size_t>(order[static_cast<std::size_t>(position)])];
  }
  /// Held by one tensor-parallel rank of an unsplit pipeline.
  std::int64_t parameters() const;
};

/// Operator graph of `model` under `step`'s framework profile, mode, batch and tensor-parallel
/// size, with pointwise chains merged if `step.kernels` says so. The profile can run the step
/// (sim/scenario/rules).
ModelGraph build_model_graph(const ModelSpec& model, const StepOptions& step);

/// Bytes of the activation that a block works on, and of the one that it makes: what a message
/// ahead of it or behind it holds. 0 where there is none.
Bytes input_bytes(const Block& block);
Bytes output_bytes(const Block& block);
/// Of results that the caller holds to the block's end: logits.
Bytes held_bytes(const Block& block);

/// A table of every operator: kernel, shape, FLOPs, traffic, memory.
std::string to_text(const ModelGraph& graph);

}  // namespace tessera
