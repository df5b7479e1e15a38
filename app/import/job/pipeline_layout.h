#pragma once

#include <string>
#include <vector>

namespace tessera {

/// Megatron's --pipeline-model-parallel-layout: "Et*3|(tt|)*29,m|L".
struct PipelineLayout {
  std::vector<int> layers;      ///< of each stage or model chunk, in the order of the model
  int predicts_more = 0;        ///< layers of multi-token prediction
  bool predicts_ahead = false;  ///< these, in the stage ahead of the loss
  std::string fault;            ///< what cannot be read; empty: nothing
};

/// E embedding, t layer, m multi-token prediction, L loss, '|' ends a stage, "x*3" and "(...)*3"
/// repeat; commas and blanks do not count.
PipelineLayout parse_pipeline_layout(const std::string& text);

}  // namespace tessera
