#include "workloads/parallel/pass_library.h"

#include <algorithm>

namespace tessera {
namespace {

std::string pass_name(const Block& block, const PassVariant& variant) {
  std::string name = block.name;
  name += variant.direction == PassDirection::forward ? ".forward" : ".backward";
  if (variant.gradients == GradientArrival::stored) name += ".first";
  return name;
}

/// `ops` without the kernels that add to existing gradients; their operands die earlier.
std::vector<GraphOp> with_stored_gradients(const Block& block) {
  Block shortened = block;
  std::erase_if(shortened.backward, [](const GraphOp& op) { return op.accumulates_gradient; });
  plan_memory(shortened);
  return shortened.backward;
}

}  // namespace

const Pass& PassLibrary::pass(const PassVariant& variant) {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& entry) { return entry.first == variant; });
  if (found != known_.end()) return found->second;
  known_.emplace_back(variant, make(variant));
  return known_.back().second;
}

Pass PassLibrary::make(const PassVariant& variant) {
  const Block& block = graph_.blocks[static_cast<std::size_t>(variant.block)];
  const PassBoundary boundary{variant.starts_with_message ? graph_.hidden_bytes : Bytes(0),
                              variant.ends_with_message ? graph_.hidden_bytes : Bytes(0)};
  const auto cut = [&](const std::vector<GraphOp>& ops) {
    return cut_into_segments({.ops = ops,
                              .name = pass_name(block, variant),
                              .block = variant.block,
                              .storages = &block.storages},
                             boundary, segments_);
  };
  if (variant.direction == PassDirection::forward) return cut(block.forward);
  const bool stored = variant.gradients == GradientArrival::stored;
  return cut(stored ? with_stored_gradients(block) : block.backward);
}

}  // namespace tessera
