#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/fit/fp32/dataset.h"
#include "lab/fit/fp32/ingredient.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// How many GPUs the fits leave out at most: 1 tells errors on unseen GPUs; 2 also tells them where
/// a choice was made without the GPU that judges it (nested leave-one-GPU-out).
enum class FoldDepth : std::uint8_t { none, one, two };

/// Fits of the parametric form with GPUs left out.
class Folds {
 public:
  /// Fits all folds, on all processors. `data` must outlive the folds.
  Folds(const std::vector<GpuData>& data, FoldDepth depth, LeftOutIngredient without = {});

  std::size_t size() const { return data_->size(); }
  const GpuData& gpu(std::size_t i) const { return (*data_)[i]; }

  FoldDepth depth() const { return depth_; }

  const PredictorWeights& all() const { return fits_.front(); }
  const PredictorWeights& without(std::size_t i) const { return without(i, i); }
  /// Neither `i` nor `j`; untrained where no GPU remains or the depth does not reach.
  const PredictorWeights& without(std::size_t i, std::size_t j) const;

 private:
  std::size_t position(std::size_t i, std::size_t j) const;

  const std::vector<GpuData>* data_;
  FoldDepth depth_;
  std::vector<PredictorWeights> fits_;  ///< all, then (i, j) with i <= j, row by row
};

}  // namespace tessera
