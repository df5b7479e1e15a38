#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "workloads/memory/caching_allocator.h"
#include "workloads/memory/launch_times.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/memory/memory_replay.h"

namespace tessera {

/// A rank's allocator over a job's first steps.
class AllocatorReplay {
 public:
  AllocatorReplay(const Program& program, int stage, const AllocatorSetting& setting,
                  const StepLaunches& first_step);

  bool has_moments() const { return has_moments_; }

  void add(const MemoryStep& step);
  /// The host waits for all that was launched; what the step left is gone.
  void end_step(const StepLaunches& next);
  /// The most that was ever held, and, where it is not `planned`, lay in segments.
  Bytes reserved(bool planned) const {
    return planned ? peak_ : std::max(peak_, allocator_.peak_reserved());
  }
  /// The most since the last update began.
  Bytes reserved_behind_passes() const { return updates_ ? behind_passes_ : allocator_.reserved(); }

 private:
  void allocate(std::int32_t op, const Allocation& allocation);
  void free(std::int32_t op, const Allocation& allocation);
  /// Source: torch/optim/adam.py, _init_group: two tensors for each parameter that has no state.
  void make_moments();
  /// On the stream of a collective, which may not be as far as the host.
  bool is_recorded(const Allocation& allocation) const;
  /// What streams have left behind at `time`.
  void give_back(Seconds time);
  /// A full device: the host waits for all streams, and segments that are free then are given
  /// back. Source: c10/cuda/CUDACachingAllocator.cpp, malloc, release_cached_blocks.
  void empty_cache();

  struct Recorded {
    Seconds free_from;
    CachingAllocator::Handle block = nullptr;
  };
  const Program& program_;
  const RankProgram& rank_;
  std::vector<Bytes> parameters_;
  const StepLaunches* times_;
  CachingAllocator allocator_;
  Bytes between_steps_, used_, peak_;
  Bytes behind_passes_;  ///< once it `updates_`
  bool has_moments_;
  bool updates_ = false;                        ///< the step has come to its update
  std::vector<CachingAllocator::Handle> held_;  ///< by id
  std::deque<Recorded> recorded_;               ///< freed, in order
};

/// What `torch.cuda.max_memory_reserved` says at the end of a step of a trainer that resets the
/// statistics behind backward: less than the highest where the device was full and segments were
/// given back before.
Bytes reserved_behind_passes(const Program& program, int stage, const AllocatorSetting& setting,
                             const LaunchTimes& times);

}  // namespace tessera
