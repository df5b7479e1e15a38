#pragma once

#include <span>
#include <vector>

#include "lab/fit/fp32/dataset.h"
#include "lab/fit/tensor/half_memory_table.h"
#include "predictor/attention/attention_weights.h"

namespace tessera {

/// Throws InputError naming the figure that `gpu` lacks (memory bandwidth, L2).
HalfMemoryGpu half_memory_gpu(const GpuSpec& gpu);

/// Effects that an ablation takes out of the form.
struct HalfMemoryForm {
  bool cache = true;  ///< faster where the L2 holds the traffic
  bool rows = true;   ///< narrow rows are slower
};

/// Log of predicted over measured time, from unconstrained parameters.
template <class T>
T half_memory_residual(const HalfMemoryShape& shape, double seconds, const HalfMemoryGpu& gpu,
                       std::span<const T> x) {
  using std::log;
  return log(half_memory_seconds(shape, gpu, HalfMemoryParameters<T>::from_unconstrained(x))) -
         T(std::log(seconds));
}

/// Of the rows that are not held out and stand for one call.
HalfMemoryVector fit_half_memory(const std::vector<const HalfMemoryMeasurement*>& rows,
                                 const HalfMemoryGpu& gpu, const HalfMemoryForm& form = {});

/// Rows of `op` that are held out, or that are not, one call each.
std::vector<const HalfMemoryMeasurement*> rows_of(const HalfMemoryTable& table, HalfMemoryOp op,
                                                  bool held_out);

/// All operators; parameters of operators without rows stay at plausible values. Throws InputError
/// where `table` holds several GPUs or none. Deterministic.
HalfMemoryWeights train_half_memory(const HalfMemoryTable& table, const GpuLookup& lookup,
                                    const HalfMemoryForm& form = {});

}  // namespace tessera
