#include "workloads/memory/memory_profile.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "workloads/memory/caching_allocator.h"
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

/// Sizes of the rank's parameters [elements, in any unit].
std::vector<Bytes> parameters_of(const Program& program, const RankProgram& stage) {
  std::vector<Bytes> sizes;
  std::int32_t last_layer = -2, last_block = -2;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind != OpKind::kernels || op.micro_batch != 0) continue;
    if (op.phase == Phase::backward) break;
    const Segment& segment = program.segment(op.segment);
    if (segment.block < 0 || (op.layer == last_layer && segment.block == last_block)) continue;
    last_layer = op.layer;
    last_block = segment.block;
    for (const Storage& storage : program.blocks[static_cast<std::size_t>(segment.block)].storages)
      if (storage.role == TensorRole::parameter) sizes.push_back(storage.bytes);
  }
  return sizes;
}

/// `bytes` divided as the parameters are.
void add_tensors(const std::vector<Bytes>& parameters, StaticTensor all,
                 std::vector<StaticTensor>& tensors) {
  if (all.bytes.value() == 0) return;
  Bytes sum;
  for (const Bytes size : parameters) sum += size;
  if (sum.value() == 0) return tensors.push_back(all);
  const double share = static_cast<double>(all.bytes.value()) / static_cast<double>(sum.value());
  for (const Bytes size : parameters)
    tensors.push_back({all.category, Bytes(static_cast<std::int64_t>(
                                         static_cast<double>(size.value()) * share))});
}

/// In the order in which a framework makes them: of every category as the parameters are divided,
/// then what libraries hold.
std::vector<StaticTensor> tensors_of(const CategoryBytes& parts,
                                     const std::vector<Bytes>& parameters, Bytes workspaces) {
  std::vector<StaticTensor> tensors;
  for (int c = 0; c < kMemoryCategories; ++c) {
    const auto category = static_cast<MemoryCategory>(c);
    add_tensors(parameters, {category, parts[category]}, tensors);
  }
  if (workspaces.value() > 0) tensors.push_back({MemoryCategory::workspace, workspaces});
  return tensors;
}

/// A rank's allocator over a job's first steps.
class AllocatorReplay {
 public:
  AllocatorReplay(const Program& program, int stage, const AllocatorSetting& setting,
                  const LaunchTimes& times)
      : program_(program),
        rank_(program.stages[static_cast<std::size_t>(stage)]),
        parameters_(parameters_of(program, rank_)),
        times_(times),
        allocator_(setting.capacity),
        between_steps_(rank_.static_parts.total() + setting.workspaces),
        used_(between_steps_),
        peak_(used_),
        has_moments_(rank_.made_by_update == Bytes(0)) {
    CategoryBytes held = rank_.static_parts;
    held[MemoryCategory::optimizer] -= rank_.made_by_update;
    for (const StaticTensor& tensor : tensors_of(held, parameters_, setting.workspaces))
      allocator_.allocate(tensor.bytes);
  }

  bool has_moments() const { return has_moments_; }

  void add(const MemoryStep& step) {
    const Allocation& allocation = step.allocation;
    if (step.op >= rank_.update_begin) make_moments();
    const auto id = static_cast<std::size_t>(allocation.id);
    if (step.allocates) {
      give_back(times_.empty() ? Seconds(0) : times_.issued_at(step.op));
      if (!recorded_.empty() && !allocator_.has_room_for(allocation.bytes)) wait_for_streams();
      if (held_.size() <= id) held_.resize(2 * id + 64);
      held_[id] = allocator_.allocate(allocation.bytes);
      used_ += allocation.bytes;
      peak_ = std::max(peak_, used_);
    } else {
      if (is_recorded(allocation))
        recorded_.push_back({times_.communicated_by(step.op), held_[id]});
      else
        allocator_.free(held_[id]);
      held_[id] = nullptr;
      used_ -= allocation.bytes;
    }
  }
  /// The host waits for all that was launched; what the step left is gone.
  void end_step() {
    make_moments();
    wait_for_streams();
    for (CachingAllocator::Handle& block : held_)
      if (block != nullptr) allocator_.free(std::exchange(block, nullptr));
    used_ = between_steps_;
  }
  Bytes reserved(bool planned) const {
    return planned ? peak_ : std::max(peak_, allocator_.peak_reserved());
  }

 private:
  /// Source: torch/optim/adam.py, _init_group: two tensors for each parameter that has no state.
  void make_moments() {
    if (std::exchange(has_moments_, true)) return;
    std::vector<StaticTensor> tensors;
    const StaticTensor half{MemoryCategory::optimizer, Bytes(rank_.made_by_update.value() / 2)};
    for (int moment = 0; moment < 2; ++moment) add_tensors(parameters_, half, tensors);
    for (const StaticTensor& tensor : tensors) allocator_.allocate(tensor.bytes);
  }
  /// On the stream of a collective, which may not be as far as the host.
  bool is_recorded(const Allocation& allocation) const {
    if (times_.empty() || allocation.block < 0 || !allocation.storage.valid()) return false;
    const ProgramBlock& block = program_.blocks[static_cast<std::size_t>(allocation.block)];
    return block.storages[static_cast<std::size_t>(allocation.storage.index())].communicated;
  }
  /// What streams have left behind at `time`.
  void give_back(Seconds time) {
    while (!recorded_.empty() && recorded_.front().free_from <= time) {
      allocator_.free(recorded_.front().block);
      recorded_.pop_front();
    }
  }
  /// A full device: the host waits before it gives segments back. Source:
  /// c10/cuda/CUDACachingAllocator.cpp, release_cached_blocks, synchronize_and_free_events.
  void wait_for_streams() { give_back(Seconds(std::numeric_limits<double>::infinity())); }

  struct Recorded {
    Seconds free_from;
    CachingAllocator::Handle block = nullptr;
  };
  const Program& program_;
  const RankProgram& rank_;
  std::vector<Bytes> parameters_;
  const LaunchTimes& times_;
  CachingAllocator allocator_;
  Bytes between_steps_, used_, peak_;
  bool has_moments_;
  std::vector<CachingAllocator::Handle> held_;  ///< by id
  std::deque<Recorded> recorded_;               ///< freed, in order
};

/// The step behind which moments are there, where it is not like later ones.
template <class Replay>
void run_first_step(AllocatorReplay& allocator, const Replay& replay) {
  if (allocator.has_moments()) return;
  replay();
  allocator.end_step();
}

}  // namespace

std::vector<StaticTensor> static_tensors(const Program& program, int stage, Bytes workspaces) {
  const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
  return tensors_of(rank.static_parts, parameters_of(program, rank), workspaces);
}

Bytes reserved_memory(const Program& program, int stage, const AllocatorSetting& setting,
                      const LaunchTimes& times) {
  const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
  AllocatorReplay allocator(program, stage, setting, times);
  const int told = times.empty() ? telling_micro_batches(rank) : times.micro_batches;
  const auto add = [&](const MemoryStep& step) { allocator.add(step); };
  run_first_step(allocator, [&] { replay_memory(program, stage, told, add); });
  replay_memory(program, stage, told, add);
  return allocator.reserved(setting.planned);
}

Bytes missing_bytes(const MemoryProfile& profile, const AllocatorSetting& allocator, Bytes budget) {
  return std::max(profile.peak - budget, profile.reserved - allocator.capacity);
}

MemoryProfile profile_memory(const Program& program, int stage, const AllocatorSetting& setting) {
  const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
  const int micro_batches = telling_micro_batches(rank);
  Profiler profiler(program, rank, setting.workspaces);
  const LaunchTimes in_order;
  AllocatorReplay allocator(program, stage, setting, in_order);
  run_first_step(allocator, [&] {
    replay_memory(program, stage, micro_batches, [&](const MemoryStep& s) { allocator.add(s); });
  });
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
