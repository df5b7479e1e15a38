#pragma once

#include <array>

#include "predictor/fp32/memory_model.h"

namespace tessera {

/// The model of memory_model.h on one GPU, compiled as GemmTable is.
class MemoryTable {
 public:
  /// `slowdown`: log of peak / reached bandwidth, per MemoryClass.
  /// `by_rule`: of a GPU that nobody timed.
  MemoryTable(const MemoryParameters<double>& parameters, const GpuTraits& gpu,
              const std::array<double, kMemoryClasses>& slowdown, bool by_rule = false);

  /// Duration [s] in a queued stream of a kernel with traffic (`shape.bytes` > 0), before the
  /// factor of its kind.
  double seconds(const MemoryShape& shape) const;

 private:
  double miss_share(double footprint) const;
  double own_seconds_per_byte(const MemoryShape& shape) const;

  MemoryParameters<double> parameters_;
  GpuTraits gpu_;
  std::array<double, kMemoryClasses> slowdown_;
  bool by_rule_;

  std::array<double, kMemoryClasses> seconds_per_byte_{};
  std::array<double, kMemoryClasses> bytes_per_row_{};
  double wide_softmax_;        ///< time against that of softmax over narrow rows
  double bytes_at_l2_centre_;  ///< traffic of which half misses
  double l2_slope_;
  double hit_share_;  ///< time of a hit against a miss, in (0, 1)
};

}  // namespace tessera
