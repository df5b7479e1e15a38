#include "workloads/memory/memory_profile.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "workloads/memory/allocator_replay.h"
#include "workloads/memory/memory_replay.h"

namespace tessera {
namespace {

class Profiler {
 public:
  Profiler(const Program& program, const RankProgram& stage, Bytes workspaces)
      : program_(program), used_(stage.static_parts) {
    used_[MemoryCategory::workspace] += workspaces;
    profile_.peak = used_.total();
    profile_.at_peak = used_;
  }

  void add(const MemoryStep& step) {
    if (profile_.over_ops.empty() || profile_.over_ops.back().op != step.op)
      profile_.over_ops.push_back({step.op, used_, used_});
    const Allocation& allocation = step.allocation;
    if (step.allocates) {
      used_[allocation.category] += allocation.bytes;
    } else {
      used_[allocation.category] -= allocation.bytes;
    }
    OpMemory& now = profile_.over_ops.back();
    now.afterwards = used_;
    if (used_.total() > now.highest.total()) now.highest = used_;
    if (used_.total() <= profile_.peak) return;
    profile_.peak = used_.total();
    profile_.at_peak = used_;
    profile_.peak_op = step.op;
    profile_.peak_kernel = step.kernel;
    peak_step_ = steps_;
  }
  void count() { ++steps_; }

  /// Second time over the same steps: who lives at the peak.
  void collect(const MemoryStep& step) {
    if (profile_.peak_op < 0 || collected_++ > peak_step_) return;
    const std::string name = name_of(step.allocation, program_);
    LiveMemory& entry = live_[{name, step.allocation.category}];
    entry.count += step.allocates ? 1 : -1;
    entry.bytes += step.allocates ? step.allocation.bytes : -step.allocation.bytes;
  }

  MemoryProfile finish() && {
    for (auto& [key, entry] : live_) {
      if (entry.count == 0) continue;
      entry.name = key.first;
      entry.category = key.second;
      profile_.live.push_back(entry);
    }
    std::ranges::stable_sort(profile_.live, std::ranges::greater{}, &LiveMemory::bytes);
    return std::move(profile_);
  }

 private:
  const Program& program_;
  CategoryBytes used_;
  MemoryProfile profile_;
  std::int64_t steps_ = 0, peak_step_ = -1, collected_ = 0;
  std::map<std::pair<std::string, MemoryCategory>, LiveMemory> live_;
};

}  // namespace

Bytes missing_bytes(const MemoryProfile& profile, const AllocatorSetting& allocator, Bytes budget) {
  return std::max(profile.peak - budget, profile.reserved - allocator.capacity);
}

CategoryBytes peak_memory(const Program& program, int stage, Bytes workspaces) {
  const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
  CategoryBytes used = rank.static_parts;
  used[MemoryCategory::workspace] += workspaces;
  CategoryBytes highest = used;
  Bytes above;  // the highest
  replay_memory(program, stage, telling_micro_batches(rank), [&](const MemoryStep& step) {
    const Bytes change = step.allocates ? step.allocation.bytes : -step.allocation.bytes;
    used[step.allocation.category] += change;
    above += change;
    if (above <= Bytes(0)) return;
    highest = used;
    above = Bytes(0);
  });
  return highest;
}

MemoryProfile profile_memory(const Program& program, int stage, const AllocatorSetting& setting) {
  const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
  const int micro_batches = telling_micro_batches(rank);
  Profiler profiler(program, rank, setting.workspaces);
  const StepLaunches in_order;
  AllocatorReplay allocator(program, stage, setting, in_order);
  if (!allocator.has_moments()) {
    replay_memory(program, stage, micro_batches, [&](const MemoryStep& s) { allocator.add(s); });
    allocator.end_step(in_order);
  }
  replay_memory(program, stage, micro_batches, [&](const MemoryStep& step) {
    profiler.add(step);
    profiler.count();
    allocator.add(step);
  });
  replay_memory(program, stage, micro_batches,
                [&](const MemoryStep& step) { profiler.collect(step); });
  MemoryProfile profile = std::move(profiler).finish();
  profile.reserved = allocator.reserved(setting.planned);
  return profile;
}

}  // namespace tessera
