#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lab/fit/fp32/folds.h"
#include "predictor/gpu/effect_rule.h"

namespace tessera {

/// Spreads of the model under `rule`: by rule from GPUs that were left out, measured from the GPUs
/// that were fitted. `judge` (a position in the folds, or folds.size() for nobody) takes no part.
Spreads fit_spreads(const Folds& folds, const EffectRule& rule, std::size_t judge);

/// Share of a GPU's kernels whose time lies in the 80 % interval, the GPU left out of everything:
/// fit, rule and spreads come from the others.
struct Coverage {
  std::string gpu;
  SpreadClass of = SpreadClass::linear;
  double share = 0;       ///< in [0, 1]
  double half_width = 0;  ///< of the interval, in log time
};
std::vector<Coverage> leave_one_out_coverage(const Folds& folds, const EffectRule& rule);

}  // namespace tessera
