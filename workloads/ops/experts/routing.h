#pragma once

#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// Top-1 routing of a mixture of experts, as Hugging Face's SwitchTransformersTop1Router and
// SwitchTransformersSparseMLP write it.

/// Classifier, softmax over `experts`, arg-max, capacity mask. Gives each token's probability
/// [b, s, 1]; small kernels over b s `experts` numbers.
Tensor route(Tape& tape, const std::string& name, const Tensor& x, std::int64_t experts);

/// One column of the router's mask as booleans, [tokens].
Tensor routed_tokens(Tape& tape, const std::string& name, std::int64_t tokens);

/// The `capacity` tokens that `mask` picks, [capacity, h]: a boolean index, whose size the host
/// waits for, and a gather. Backward: zero fill and scatter.
Tensor select_tokens(Tape& tape, const std::string& name, const Tensor& x, const Tensor& mask,
                     std::int64_t capacity);

/// `target` with one expert's results written over the tokens that `mask` picks, in place; the host
/// waits for their number once more. Backward: the tokens' gradient is gathered for the expert and
/// zeroed for `target`.
Tensor scatter_tokens(Tape& tape, const std::string& name, const Tensor& target, const Tensor& mask,
                      const Tensor& results);

}  // namespace tessera
