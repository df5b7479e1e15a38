#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "hw/gpu.h"
#include "sim/collectives/collective.h"
#include "workloads/program/program.h"

namespace tessera {

/// Shares of a GPU that collectives take from the kernels beside them, each in [0, 1].
struct DeviceLoad {
  double multiprocessors = 0;  ///< NCCL's thread blocks stay on theirs until the collective ends
  double bandwidth = 0;        ///< of the device memory, that they would use alone

  bool operator==(const DeviceLoad&) const = default;
};

/// What a collective takes from the kernels of `gpu` beside it while it moves data.
DeviceLoad load_of(const CollectiveCost& cost, const GpuSpec& gpu);

inline DeviceLoad operator+(const DeviceLoad& a, const DeviceLoad& b) {
  return {a.multiprocessors + b.multiprocessors, a.bandwidth + b.bandwidth};
}

/// Of the collectives that run on a GPU: each of its streams runs one at most.
class DeviceLoads {
 public:
  bool empty() const { return count_ == 0; }
  const DeviceLoad& sum() const { return sum_; }
  /// One of them changes, begins (`from` is nothing) or ends (`to` is nothing).
  void change(const DeviceLoad& from, const DeviceLoad& to) {
    if (from == DeviceLoad()) {
      loads_[count_++] = to;
      sum_ = sum_ + to;
      return;
    }
    if (count_ == 1) {
      loads_[0] = sum_ = to;
      count_ = to == DeviceLoad() ? 0 : 1;
      return;
    }
    std::size_t place = 0;
    while (loads_[place] != from) ++place;
    if (to != DeviceLoad()) {
      loads_[place] = to;
    } else {
      --count_;
      for (; place < count_; ++place) loads_[place] = loads_[place + 1];
    }
    // Summed anew, so that a GPU without collectives has no rounding left over.
    sum_ = DeviceLoad();
    for (std::size_t i = 0; i < count_; ++i) sum_ = sum_ + loads_[i];
  }

 private:
  DeviceLoad sum_;
  std::size_t count_ = 0;
  std::array<DeviceLoad, kStreamCount> loads_;  ///< in the order in which they began
};

/// Kernels beside collectives of `load`: a share of their time alone is spent in matrix products
/// and attention, which lose waves to the missing multiprocessors; the rest is memory-bound. The
/// device memory serves who asks in proportion to what they ask for: where kernels ask for all of
/// it and collectives for a share b, both take 1 + b times as long.
class KernelsBeside {
 public:
  KernelsBeside(const DeviceLoad& load, double product_share)
      : products_(product_share / std::max(kLeastLeft, 1 - load.multiprocessors)),
        others_alone_(1 - product_share),
        others_(others_alone_ * (1 + load.bandwidth)) {}

  /// Time of the kernels over their time alone.
  double stretch() const { return products_ + others_; }
  /// Time of the collectives over their time alone: full pace beside products, 1 / (1 + b) of it
  /// beside the rest.
  double stretch_of_collectives() const {
    return others_ > 0 ? (products_ + others_) / (products_ + others_alone_) : 1;
  }

 private:
  static constexpr double kLeastLeft = 0.1;  ///< of the multiprocessors, to kernels

  double products_;      ///< time spent in products, per time alone of all kernels
  double others_alone_;  ///< in the rest, alone
  double others_;        ///< in the rest, beside the collectives
};

}  // namespace tessera
