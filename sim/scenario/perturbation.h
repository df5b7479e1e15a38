#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/gpu.h"

namespace tessera {

/// Some ranks run on other GPUs, or slower than their GPUs should.
struct GpuPerturbation {
#include "configs/schema/fields/gpu_perturbation.inc"
};

/// What differs from rank to rank and from step to step: the section `perturbation` of a scenario.
/// Slow and missing links are the cluster's `faults`.
struct Perturbation {
#include "configs/schema/fields/perturbation.inc"

  bool any() const {
    return !gpus.empty() || kernel_jitter > 0;
  }
};

struct ParallelLayout;

/// The ranks of `layout` that `gpus` means, ascending. Throws InputError for lists that are none,
/// and for those that name a rank, stage or replica that `layout` does not have: `where` is the
/// field.
std::vector<int> ranks_of(const GpuPerturbation& gpus, const ParallelLayout& layout);

/// Ranks that a list such as "0-7, 16" names, in its order. Throws InputError for anything else.
std::vector<int> parse_ranks(const std::string& list);

}  // namespace tessera
