#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/gpu.h"

namespace tessera {

/// Some ranks run on other GPUs, or slower than their GPUs should.
struct GpuPerturbation {
  std::string ranks;    ///< "0-7, 16"
  GpuSpec gpu;          ///< without an id: the cluster's
  double slowdown = 1;  ///< time of kernels over their time on a healthy GPU, above 0
};

/// What differs from rank to rank and from step to step: the section `perturbation` of a scenario.
/// Slow and missing links are the cluster's `faults`.
struct Perturbation {
  std::vector<GpuPerturbation> gpus;  ///< of a rank that several name, the last one holds
  double kernel_jitter = 0;  ///< sigma of the log of a kernel's time; every run draws anew, mean 1
  std::int64_t seed = 1;     ///< of the jitter

  bool any() const { return !gpus.empty() || kernel_jitter > 0; }
};

/// Ranks that a list such as "0-7, 16" names, in its order. Throws InputError for anything else.
std::vector<int> parse_ranks(const std::string& list);

}  // namespace tessera
