#pragma once

#include <algorithm>

namespace tessera {

/// Shares of a GPU that collectives take from the kernels beside them, each in [0, 1].
struct DeviceLoad {
  double multiprocessors = 0;  ///< NCCL's thread blocks stay on theirs until the collective ends
  double bandwidth = 0;        ///< of the device memory

  bool operator==(const DeviceLoad&) const = default;
};

inline DeviceLoad operator+(const DeviceLoad& a, const DeviceLoad& b) {
  return {a.multiprocessors + b.multiprocessors, a.bandwidth + b.bandwidth};
}

/// Time of kernels beside `load` over their time alone. `product_share` of that time is spent in
/// matrix products and attention, which lose waves to the missing multiprocessors; the rest is
/// memory-bound and loses bandwidth. At least a tenth of a GPU is left to kernels.
inline double stretch(const DeviceLoad& load, double product_share) {
  constexpr double kLeastLeft = 0.1;
  const double multiprocessors = std::max(kLeastLeft, 1 - load.multiprocessors);
  const double bandwidth = std::max(kLeastLeft, 1 - load.bandwidth);
  return product_share / multiprocessors + (1 - product_share) / bandwidth;
}

}  // namespace tessera
