#pragma once

#include <string>

#include "lab/fit/tensor/half_memory_fit.h"

namespace tessera {

/// What the trained form gets right and wrong, as text: parameters, held-out errors by operator and
/// width, ablations.
std::string half_memory_study(const HalfMemoryTable& table, const GpuLookup& lookup,
                              const HalfMemoryWeights& weights);

}  // namespace tessera
