#include "sim/formats/snapshot/step_snapshot.h"

#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "workloads/memory/caching_allocator.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/memory/memory_replay.h"

namespace tessera {
namespace {

/// Where CUDA's addresses begin, as one sees them.
constexpr std::int64_t kFirstAddress = 0x7f0000000000;

/// Who took a block, and what for.
struct Held {
  SnapshotUse use = SnapshotUse::unknown;
  std::int32_t label = -1;
};
struct AddressRange {
  std::int64_t address = 0, bytes = 0;
};

class SnapshotRecorder {
 public:
  SnapshotRecorder(const TimedProgram& timed, int stage)
      : timed_(timed), stage_(stage), allocator_(timed.library_memory.allocator.capacity) {}

  MemorySnapshot run() && {
    for (const StaticTensor& tensor :
         static_tensors(timed_.program, stage_, timed_.library_memory.allocator.workspaces))
      take(tensor.bytes, use_of(tensor.category), std::string(name_of(tensor.category)));
    replay_memory(timed_.program, stage_, -1, [&](const MemoryStep& step) { add(step); });
    list_segments();
    return std::move(snapshot_);
  }

 private:
  using Handle = CachingAllocator::Handle;

  void add(const MemoryStep& step) {
    const Allocation& allocation = step.allocation;
    if (!step.allocates) return give_back(held_.extract(allocation.id).mapped());
    std::string name = name_of(allocation, timed_.program);
    if (allocation.layer >= 0) name += ", layer " + std::to_string(allocation.layer);
    if (allocation.micro_batch >= 0)
      name += ", micro-batch " + std::to_string(allocation.micro_batch);
    held_[allocation.id] = take(allocation.bytes, use_of(allocation.category), name);
  }
  Handle take(Bytes bytes, SnapshotUse use, const std::string& name) {
    const Handle block = allocator_.allocate(bytes);
    note_segments(*block);
    const auto [label, is_new] = labels_.try_emplace(name, snapshot_.labels.size());
    if (is_new) snapshot_.labels.push_back(name);
    const Held held{use, static_cast<std::int32_t>(label->second)};
    event(SnapshotAction::take, {block->address, block->bytes}, held);
    owners_[block->address] = held;
    return block;
  }
  void give_back(Handle block) {
    event(SnapshotAction::give_back, {block->address, block->bytes});
    owners_.erase(block->address);
    allocator_.free(block);
  }

  void event(SnapshotAction action, AddressRange range, Held held = {}) {
    snapshot_.events.push_back({.action = action,
                                .address = kFirstAddress + range.address,
                                .bytes = Bytes(range.bytes),
                                .use = held.use,
                                .label = held.label});
  }
  /// A segment that is new begins where its first block does; others may have been given back for
  /// it.
  void note_segments(const CachingAllocator::Block& block) {
    if (segments_.contains(block.segment)) return;
    std::map<int, AddressRange> now;
    for (const CachingAllocator::Block& each : allocator_.blocks()) {
      AddressRange& range =
          now.try_emplace(each.segment, AddressRange{each.address, 0}).first->second;
      range.bytes += each.bytes;
    }
    for (const auto& [segment, range] : segments_)
      if (!now.contains(segment)) event(SnapshotAction::end_segment, range);
    segments_ = std::move(now);
    event(SnapshotAction::new_segment, segments_.at(block.segment));
  }

  void list_segments() {
    std::map<int, SnapshotSegment> segments;
    for (const CachingAllocator::Block& block : allocator_.blocks()) {
      SnapshotSegment& segment = segments[block.segment];
      if (segment.blocks.empty()) segment.address = kFirstAddress + block.address;
      segment.small = block.small;
      segment.bytes += Bytes(block.bytes);
      const auto owner = owners_.find(block.address);
      const Held held = block.free || owner == owners_.end() ? Held() : owner->second;
      segment.blocks.push_back({.address = kFirstAddress + block.address,
                                .bytes = Bytes(block.bytes),
                                .active = !block.free,
                                .use = held.use,
                                .label = held.label});
    }
    for (auto& [number, segment] : segments) snapshot_.segments.push_back(std::move(segment));
  }

  const TimedProgram& timed_;
  int stage_;
  CachingAllocator allocator_;
  MemorySnapshot snapshot_;
  std::map<std::string, std::size_t> labels_;
  std::unordered_map<std::int64_t, Handle> held_;  ///< by allocation
  std::unordered_map<std::int64_t, Held> owners_;  ///< by address
  std::map<int, AddressRange> segments_;
};

}  // namespace

MemorySnapshot snapshot_of_step(const TimedProgram& timed, int stage) {
  return SnapshotRecorder(timed, stage).run();
}

int fullest_stage(const TimedProgram& timed) {
  int fullest = 0;
  Bytes most;
  for (int stage = 0; stage < static_cast<int>(timed.program.stages.size()); ++stage) {
    const Bytes peak = profile_memory(timed.program, stage, timed.library_memory.allocator).peak;
    if (peak > most) {
      most = peak;
      fullest = stage;
    }
  }
  return fullest;
}

}  // namespace tessera
