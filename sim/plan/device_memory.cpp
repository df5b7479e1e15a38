#include "sim/plan/device_memory.h"

#include <algorithm>

#include "sim/plan/launch_clock.h"
#include "workloads/memory/memory_profile.h"

namespace tessera {

Bytes DeviceMemories::reserved_by(int stage) {
  if (times_.empty()) times_ = launch_times(timed_);
  const Bytes limit = timed_.memory_limit.bytes;
  AllocatorSetting setting = timed_.library_memory.allocator;
  if (limit <= Bytes(0))
    return reserved_memory(timed_.program, stage, setting, times_[static_cast<std::size_t>(stage)]);
  setting.capacity = std::min(setting.capacity, limit);
  return std::min(limit, reserved_memory(timed_.program, stage, setting));
}

DeviceMemory DeviceMemories::of(int stage, Bytes allocated) {
  const auto [entry, is_new] = reserved_.try_emplace(stage);
  if (is_new) entry->second = reserved_by(stage);
  return {.allocated = allocated,
          .reserved = std::max(entry->second, allocated),
          .context = timed_.library_memory.context,
          .communicators = timed_.library_memory.communicators};
}

Bytes room_for_tensors(const TimedProgram& timed) {
  const LibraryMemory& libraries = timed.library_memory;
  return timed.memory_capacity - libraries.context - libraries.communicators;
}

TimedProgram kept_within(Bytes budget, TimedProgram timed) {
  const LibraryMemory& libraries = timed.library_memory;
  timed.memory_capacity =
      std::min(timed.memory_capacity, budget + libraries.context + libraries.communicators);
  return timed;
}

}  // namespace tessera
