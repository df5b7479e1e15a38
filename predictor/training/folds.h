#pragma once

#include <cstddef>
#include <vector>

#include "predictor/training/dataset.h"
#include "predictor/weights.h"

namespace tessera {

/// Fits of the parametric form with GPUs left out: none, every one, every pair. Selecting a
/// configuration without the GPU that judges it (nested leave-one-GPU-out) needs the pairs.
class Folds {
 public:
  /// Fits all folds, on all processors. `data` must outlive the folds.
  explicit Folds(const std::vector<GpuData>& data);

  std::size_t size() const { return data_->size(); }
  const GpuData& gpu(std::size_t i) const { return (*data_)[i]; }

  const PredictorWeights& all() const { return fits_[0]; }
  const PredictorWeights& without(std::size_t i) const { return without(i, i); }
  /// Neither `i` nor `j`.
  const PredictorWeights& without(std::size_t i, std::size_t j) const;

 private:
  std::size_t position(std::size_t i, std::size_t j) const;

  const std::vector<GpuData>* data_;
  std::vector<PredictorWeights> fits_;  ///< all, then (i, j) with i <= j, row by row
};

}  // namespace tessera
