// Which blocks of a model a pipeline stage runs.
#include <algorithm>
#include <numeric>
#include <vector>

#include "workloads/parallel/layer_split.h"
#include "workloads/parallel/stage_program.h"

namespace tessera {

StageBlocks blocks_of_part(const ModelGraph& graph, int part, const std::vector<int>& layers) {
  const int positions = static_cast<int>(graph.order.size());
  const int parts = static_cast<int>(layers.size());
  if (parts == 1) return {0, positions};
  if (!graph.blocks_of_parts.empty()) {
    const auto at = graph.blocks_of_parts.begin() + part;
    const int begin = std::accumulate(graph.blocks_of_parts.begin(), at, 0);
    return {begin, begin + *at};
  }
  constexpr int kEmbedding = 1;  // embedding first, head last, layers between
  const auto before = layers.begin() + part;
  const int first = std::accumulate(layers.begin(), before, kEmbedding);
  StageBlocks blocks{first, first + *before};
  if (part == 0) blocks.begin = 0;
  if (part == parts - 1) blocks.end = positions;
  return blocks;
}

int first_layer(const ModelGraph& graph, const StageBlocks& blocks) {
  int position = blocks.begin;
  while (position + 1 < blocks.end &&
         graph.layer_numbers[static_cast<std::size_t>(position)] == kNoLayer)
    ++position;
  return position;
}

std::vector<int> layers_of_parts(const ModelGraph& graph, const StepOptions& step) {
  if (!graph.blocks_of_parts.empty()) {
    std::vector<int> layers;
    for (auto number = graph.layer_numbers.begin(); const int blocks : graph.blocks_of_parts) {
      layers.push_back(blocks - static_cast<int>(std::count(number, number + blocks, kNoLayer)));
      number += blocks;
    }
    return layers;
  }
  constexpr std::int64_t kEnds = 2;  // embedding and head
  const std::int64_t layers = std::max<std::int64_t>(0, std::ssize(graph.order) - kEnds);
  return layers_of_parts(layers, step).value();
}

}  // namespace tessera
