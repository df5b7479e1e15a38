#pragma once

#include <cstdint>
#include <vector>

#include "hw/gpu.h"
#include "sim/plan/timed_segment.h"

namespace tessera {

/// How the kernels of one rank differ from those of the cluster's GPU.
struct RankPace {
  int table = -1;       ///< in RankPaces::tables; -1: the program's own segments
  double slowdown = 1;  ///< of every kernel

  bool operator==(const RankPace&) const = default;
};

/// Where ranks do not run their kernels in the same time.
struct RankPaces {
  std::vector<std::vector<TimedSegment>> tables;  ///< segments on other GPUs
  std::vector<GpuSpec> gpus;                      ///< by table: what it is of
  std::vector<RankPace> ranks;                    ///< by rank; empty: all alike
  double kernel_jitter = 0;                       ///< sigma of the log of a kernel's time
  std::uint64_t seed = 1;

  RankPace of(int rank) const {
    return ranks.empty() ? RankPace() : ranks[static_cast<std::size_t>(rank)];
  }
  /// The segment as the GPU of `rank` runs it; `own` is that of the cluster's GPU.
  const TimedSegment& segment(int rank, std::size_t number, const TimedSegment& own) const {
    const int table = of(rank).table;
    return table < 0 ? own : tables[static_cast<std::size_t>(table)][number];
  }
  /// What `segment` takes alone as op `op` of `rank`: slowed down, and with a factor for every
  /// kernel that depends on nothing but seed, rank, op and kernel. Factors are log-normal with
  /// mean 1.
  Seconds duration(int rank, std::int32_t op, const TimedSegment& segment) const {
    const bool alike = kernel_jitter <= 0 && ranks.empty();
    return alike ? segment.duration : perturbed(rank, op, segment);
  }

 private:
  Seconds perturbed(int rank, std::int32_t op, const TimedSegment& segment) const;
};

}  // namespace tessera
