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

/// Whether an operator makes buffers of parameters alone.
bool makes_kept_copy(const Block& block, const GraphOp& op) {
  const auto all = [&](const std::vector<Access>& accesses, TensorRole role) {
    return !accesses.empty() && std::ranges::all_of(accesses, [&](const Access& access) {
      return block.storage(access.storage).role == role;
    });
  };
  return op.kind == GraphOpKind::kernel && all(op.reads, TensorRole::parameter) &&
         all(op.writes, TensorRole::buffer);
}

std::string pass_name(const Block& block, const PassVariant& variant) {
  std::string name = block.name;
  name += label_of(variant.direction);
  if (variant.gradients == GradientArrival::stored || variant.makes_kept_copies) name += ".first";
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

SegmentId PassLibrary::host_segment(const std::string& name, Bytes moved) {
  const SegmentId id(static_cast<std::int32_t>(segments_.size()));
  Segment& segment = segments_.emplace_back();
  segment.name = name;
  segment.phase = Phase::optimizer;
  segment.host_moved = moved;
  return id;
}

const Pass& PassLibrary::pass(const PassVariant& variant) {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& entry) { return entry.first == variant; });
  if (found != known_.end()) return found->second;
  known_.emplace_back(variant, make(variant));
  return known_.back().second;
}

bool PassLibrary::makes_kept_copies(int block) const {
  const Block& made = graph_.blocks[static_cast<std::size_t>(block)];
  return std::ranges::any_of(made.forward,
                             [&](const GraphOp& op) { return makes_kept_copy(made, op); });
}

std::vector<GraphOp> PassLibrary::forward_ops(const PassVariant& variant) const {
  Block block = graph_.blocks[static_cast<std::size_t>(variant.block)];
  if (variant.makes_kept_copies) return block.forward;
  if (std::erase_if(block.forward, [&](const GraphOp& op) { return makes_kept_copy(block, op); }))
    plan_memory(block);
  return block.forward;
}

/// Without the kernels that add to existing gradients where there are none: their operands die
/// earlier.
std::vector<GraphOp> PassLibrary::backward_ops(const PassVariant& variant) const {
  Block block = graph_.blocks[static_cast<std::size_t>(variant.block)];
  if (variant.gradients == GradientArrival::stored) {
    std::erase_if(block.backward, [](const GraphOp& op) { return op.accumulates_gradient; });
    plan_memory(block);
  }
  if (std::erase_if(block.backward, [&](const GraphOp& op) { return makes_kept_copy(block, op); }))
    plan_memory(block);
  if (variant.direction == PassDirection::backward) return block.backward;
  SplitBackward split = split_backward(std::move(block));
  return variant.direction == PassDirection::input_gradient ? split.input_gradient
                                                            : split.weight_gradient;
}

Pass PassLibrary::make(const PassVariant& variant) {
  const Block& block = graph_.blocks[static_cast<std::size_t>(variant.block)];
  const bool forward = variant.direction == PassDirection::forward;
  const bool leaves = variant.ends_with_message && !(forward && variant.keeps_sent);
  const Bytes ahead = input_bytes(block);
  const Bytes behind = output_bytes(block);
  const PassBoundary boundary{variant.starts_with_message ? (forward ? ahead : behind) : Bytes(0),
                              leaves ? (forward ? behind : ahead) : Bytes(0),
                              !forward && variant.keeps_sent ? behind : Bytes(0)};
  const std::vector<GraphOp> ops = forward ? forward_ops(variant) : backward_ops(variant);
  return cut_into_segments({.ops = ops,
                            .name = pass_name(block, variant),
                            .block = variant.block,
                            .storages = &block.storages,
                            .segment_per_call = segment_per_call_},
                           boundary, segments_);
}

}  // namespace tessera
