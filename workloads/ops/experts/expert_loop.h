#pragma once

#include <cstdint>
#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// A mixture of experts as a loop over modules: Hugging Face's MixtralSparseMoeBlock (transformers
// 4.40, models/mixtral/modeling_mixtral.py; Qwen's mixtures are the same). Python asks the GPU for
// every expert's number of tokens. Sizes below: n tokens, k experts per token, h hidden.

/// What the router says of n tokens.
struct ExpertChoice {
  Tensor weights;  ///< [n, k], in the format of activations
  Tensor mask;     ///< one-hot, [n, k, experts] int64
};

/// Classifier in the format of activations, softmax in fp32, the best `k`, divided by their sum;
/// the choice as a one-hot mask of 8 n k `experts` bytes, which lives to the end of the loop.
ExpertChoice choose_experts(Tape& tape, const std::string& name, const Tensor& x,
                            std::int64_t experts, std::int64_t k);

/// torch.where over one expert's column of `mask`: its `count` tokens and at which place they chose
/// it, [count, 2] int64. The host waits for the number.
Tensor tokens_of_expert(Tape& tape, const std::string& name, const Tensor& mask,
                        std::int64_t count);

/// x[positions], of `sizes`: a gather. Backward: zeros of the size of `x`, and index_put with
/// accumulation into them: positions as numbers, their sort, the addition. Saves the positions.
Tensor rows_at(Tape& tape, const std::string& name, const Tensor& x, const Tensor& positions,
               Sizes sizes);

/// torch.zeros.
Tensor zeros(Tape& tape, const std::string& name, Sizes sizes);

/// target.index_add_(0, positions, rows), in place: rows read, places of `target` read and written.
/// Backward: a gather for the rows, nothing for `target`.
Tensor add_rows_at(Tape& tape, const std::string& name, const Tensor& target, const Tensor& rows,
                   const Tensor& positions);

}  // namespace tessera
