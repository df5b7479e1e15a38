#include "lab/fit/fp32/folds.h"

#include <algorithm>

#include "hw/units/parallel_for.h"
#include "lab/fit/fp32/parametric_fit.h"

namespace tessera {

Folds::Folds(const std::vector<GpuData>& data, FoldDepth depth, LeftOutIngredient without)
    : data_(&data), depth_(depth) {
  struct LeftOut {
    std::size_t i, j;
  };
  const std::size_t none = data.size();
  std::vector<LeftOut> folds{{none, none}};
  for (std::size_t i = 0; i < data.size() && depth != FoldDepth::none; ++i) {
    for (std::size_t j = i; j < data.size(); ++j)
      if (i == j || depth == FoldDepth::two) folds.push_back({i, j});
  }
  fits_.resize(position(none, none) + 1);
  parallel_for(folds.size(), [&](std::size_t fold) {
    const auto [i, j] = folds[fold];
    std::vector<const GpuData*> kept;
    for (std::size_t g = 0; g < data.size(); ++g)
      if (g != i && g != j) kept.push_back(&data[g]);
    if (!kept.empty()) fits_[i == none ? 0 : position(i, j)] = fit_parametric(kept, without);
  });
}

const PredictorWeights& Folds::without(std::size_t i, std::size_t j) const {
  return fits_[position(std::min(i, j), std::max(i, j))];
}

std::size_t Folds::position(std::size_t i, std::size_t j) const {
  const std::size_t n = data_->size();
  return 1 + i * n - i * (i - 1) / 2 + (j - i);  // rows 0..i-1 hold n, n-1, ... folds
}

}  // namespace tessera
