#pragma once

#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// Losses over logits [tokens, V / ranks] of which every tensor-parallel rank holds some words, and
// losses that are one compiled function. Ranks exchange the largest logit, the sum of exponentials
// and the picked logit of each token, in three all-reduces that nothing hides.

/// F.cross_entropy under DTensor's loss_parallel, of fp32 logits: three kernels of 8 bytes a logit
/// and two reductions forward; backward a fill, exp, an addition and a product (4, 8, 12, 8 bytes).
/// Saves the log-probabilities. Source: torch/distributed/tensor/parallel/loss.py, _log_softmax,
/// _nll_loss_forward, _nll_loss_and_log_softmax_backward.
Tensor loss_parallel(Tape& tape, const std::string& name, const Tensor& logits,
                     const Tensor& labels);

/// Cross-entropy in fp32 of 16-bit logits, under torch.compile: forward reads them twice, a maximum
/// with a running sum and what labels pick; backward reads them once more and writes their
/// gradient. Saves the logits and two numbers a token. With `ranks` > 1 as above.
Tensor compiled_cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                              const Tensor& labels, int ranks);

}  // namespace tessera
