#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/graph/tape.h"

namespace tessera {

/// The bias of each expert's results where a token's weight has multiplied what led to them: no
/// epilogue can weigh it, so eager kernels in fp32 do, expert by expert: the bias times the weights
/// of its rows, and their sum with the results; then a copy that joins the experts' rows, and a
/// cast. Backward: a cast; by expert a cast, two products and a sum of each; the copy that joins.
/// `loads`: rows of each expert. Source: Megatron-Core transformer/moe/experts.py, TEGroupedMLP,
/// _apply_bias; NeMo AutoModel components/moe/layers.py (both recalled).
Tensor add_weighted_bias(Tape& tape, const std::string& name, const Tensor& rows,
                         const Tensor& weights, const std::vector<std::int64_t>& loads);

/// The bias of each expert's results by eager kernels, expert by expert: a sum, 2e, and a copy that
/// joins the experts' rows, 2e; backward a sum over each expert's rows and a copy that joins, 2e.
/// Source: NeMo AutoModel components/moe/layers.py, GroupedExpertsDeepEP._apply_bias (recalled).
Tensor add_expert_bias(Tape& tape, const std::string& name, const Tensor& rows,
                       const std::vector<std::int64_t>& loads);

}  // namespace tessera
