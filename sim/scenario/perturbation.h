#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/gpu.h"

namespace tessera {

/// Some ranks run on other GPUs, or slower than their GPUs should.
struct GpuPerturbation {
  std::string ranks;               ///< "0-7, 16"; empty: all of the stages and replicas
  GpuSpec gpu;                     ///< without an id: the cluster's
  double slowdown = 1;             ///< time of kernels over their time on a healthy GPU, above 0
  std::string stages;              ///< of the pipeline, "0-3"; empty: all
  std::string replicas;            ///< data-parallel ones; empty: all
  double nic_bandwidth_share = 1;  ///< of the NICs of their nodes, in (0, 1]
};

/// What differs from rank to rank and from step to step: the section `perturbation` of a scenario.
/// Slow and missing links are the cluster's `faults`.
struct Perturbation {
  std::vector<GpuPerturbation> gpus;  ///< of a rank that several name, the last one holds
  double kernel_jitter = 0;  ///< sigma of the log of a kernel's time; every run draws anew, mean 1
  std::int64_t seed = 1;     ///< of the jitter

  bool any() const { return !gpus.empty() || kernel_jitter > 0; }
};

struct ParallelLayout;

/// The ranks of `layout` that `gpus` means, ascending. Throws InputError for lists that are none,
/// and for those that name a rank, stage or replica that `layout` does not have: `where` is the
/// field.
std::vector<int> ranks_of(const GpuPerturbation& gpus, const ParallelLayout& layout);

/// Ranks that a list such as "0-7, 16" names, in its order. Throws InputError for anything else.
std::vector<int> parse_ranks(const std::string& list);

}  // namespace tessera
