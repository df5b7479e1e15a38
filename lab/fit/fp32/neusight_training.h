#pragma once

#include <cstdint>
#include <vector>

#include "lab/fit/fp32/dataset.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// Trains the `neusight` form, one net per operator class: Adam on |t - p| / (t + p), rows shuffled
/// by raw std::mt19937_64 output of `seed`, one thread, double accumulation.
std::vector<NeusightClass> train_neusight(const std::vector<const GpuData*>& gpus,
                                          std::uint64_t seed);

}  // namespace tessera
