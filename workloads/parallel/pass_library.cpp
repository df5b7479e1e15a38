#include "workloads/parallel/pass_library.h"

#include <algorithm>
#include <string_view>

#include "workloads/parallel/split_backward.h"

namespace tessera {
namespace {

std::string_view label_of(PassDirection direction) {
  switch (direction) {
    case PassDirection::forward:
      return ".forward";
    case PassDirection::backward:
      return ".backward";
    case PassDirection::input_gradient:
      return ".input_gradient";
    case PassDirection::weight_gradient:
      return ".weight_gradient";
  }
  return "";
}

std::string pass_name(const Block& block, const PassVariant& variant) {
  std::string name = block.name;
  name += label_of(variant.direction);
  if (variant.gradients == GradientArrival::stored) name += ".first";
  return name;
}

}  // namespace

SegmentId PassLibrary::empty_segment() {
  if (!empty_segment_.valid()) {
    empty_segment_ = SegmentId(static_cast<std::int32_t>(segments_.size()));
    segments_.emplace_back().name = "wait";
  }
  return empty_segment_;
}

const Pass& PassLibrary::pass(const PassVariant& variant) {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& entry) { return entry.first == variant; });
  if (found != known_.end()) return found->second;
  known_.emplace_back(variant, make(variant));
  return known_.back().second;
}

/// Without the kernels that add to existing gradients where there are none: their operands die
/// earlier.
std::vector<GraphOp> PassLibrary::backward_ops(const PassVariant& variant) const {
  Block block = graph_.blocks[static_cast<std::size_t>(variant.block)];
  if (variant.gradients == GradientArrival::stored) {
    std::erase_if(block.backward, [](const GraphOp& op) { return op.accumulates_gradient; });
    plan_memory(block);
  }
  if (variant.direction == PassDirection::backward) return block.backward;
  SplitBackward split = split_backward(std::move(block));
  return variant.direction == PassDirection::input_gradient ? split.input_gradient
                                                            : split.weight_gradient;
}

Pass PassLibrary::make(const PassVariant& variant) {
  const Block& block = graph_.blocks[static_cast<std::size_t>(variant.block)];
  const bool forward = variant.direction == PassDirection::forward;
  const bool leaves = variant.ends_with_message && !(forward && variant.keeps_sent);
  const PassBoundary boundary{variant.starts_with_message ? graph_.hidden_bytes : Bytes(0),
                              leaves ? graph_.hidden_bytes : Bytes(0),
                              !forward && variant.keeps_sent ? graph_.hidden_bytes : Bytes(0)};
  const std::vector<GraphOp> backward = forward ? std::vector<GraphOp>() : backward_ops(variant);
  return cut_into_segments({.ops = forward ? block.forward : backward,
                            .name = pass_name(block, variant),
                            .block = variant.block,
                            .storages = &block.storages},
                           boundary, segments_);
}

}  // namespace tessera
