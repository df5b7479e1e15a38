#include "workloads/memory/segment_temporaries.h"

#include <deque>
#include <map>
#include <set>
#include <utility>

namespace tessera {
namespace {

constexpr std::int32_t kPassesOn = -1;

/// A tensor, in whichever layer and micro-batch.
using TensorKey = std::pair<std::int32_t, std::int32_t>;  // block and storage

TensorKey tensor_of(const Segment& segment, const MemoryEvent& event) {
  return {segment.block, event.storage.valid() ? event.storage.index() : -1};
}

/// Whether other blocks see what the event makes or frees.
bool is_passed(const Program& program, const Segment& segment, const MemoryEvent& event) {
  if (event.kind != MemoryEventKind::allocate && event.kind != MemoryEventKind::free) return true;
  if (!event.storage.valid()) return false;
  const ProgramBlock& block = program.blocks[static_cast<std::size_t>(segment.block)];
  const StorageScope scope = block.storages[static_cast<std::size_t>(event.storage.index())].scope;
  return scope != StorageScope::local && scope != StorageScope::held &&
         scope != StorageScope::persistent;
}

/// Frees the oldest allocation of a tensor first, as a replay does. `seen_outside` gets the tensors
/// of which a free or an allocation finds no other half.
std::vector<std::int32_t> pairs_of(const Program& program, const Segment& segment,
                                   std::set<TensorKey>& seen_outside) {
  std::vector<std::int32_t> maker(segment.memory.size(), kPassesOn);
  std::map<TensorKey, std::deque<std::int32_t>> open;
  for (std::size_t i = 0; i < maker.size(); ++i) {
    const MemoryEvent& event = segment.memory[i];
    if (is_passed(program, segment, event)) continue;
    auto& made = open[tensor_of(segment, event)];
    if (event.kind == MemoryEventKind::allocate) {
      maker[i] = static_cast<std::int32_t>(i);
      made.push_back(maker[i]);
    } else if (made.empty()) {
      seen_outside.insert(tensor_of(segment, event));
    } else {
      maker[i] = made.front();
      made.pop_front();
    }
  }
  for (const auto& [tensor, made] : open)
    if (!made.empty()) seen_outside.insert(tensor);
  return maker;
}

}  // namespace

SegmentTemporaries::SegmentTemporaries(const Program& program, const RankProgram& stage)
    : maker_(program.segments.size()) {
  std::set<TensorKey> seen_outside;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind != OpKind::kernels) continue;
    auto& maker = maker_[static_cast<std::size_t>(op.segment.index())];
    if (maker.empty()) maker = pairs_of(program, program.segment(op.segment), seen_outside);
  }
  for (std::size_t number = 0; number < maker_.size(); ++number) {
    const Segment& segment = program.segments[number];
    for (std::size_t i = 0; i < maker_[number].size(); ++i)
      if (seen_outside.contains(tensor_of(segment, segment.memory[i])))
        maker_[number][i] = kPassesOn;
  }
}

}  // namespace tessera
