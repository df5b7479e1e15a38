#pragma once

#include <string>
#include <vector>

#include "lab/fit/fp32/spread_fit.h"
#include "lab/validate/studies/rule_study.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// Leave-one-GPU-out errors on kernels: a row per form and operator, a column per GPU.
std::string kernel_logo_table(const PredictorWeights& weights,
                              const std::vector<std::string>& anomalous_linear);

/// What is particular to each measured GPU.
std::string effects_table(const PredictorWeights& weights);

/// How often the 80 % interval holds a kernel of a GPU that was left out.
std::string coverage_table(const std::vector<Coverage>& coverage, const Spreads& spreads);

/// Rules for unseen GPUs on whole models, plain and selection-adjusted, then row by row.
std::string rule_study_table(const RuleStudy& study);

}  // namespace tessera
