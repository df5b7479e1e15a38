#pragma once

#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// Megatron's fused losses per token over 16-bit logits [s, b, V / tensor]. The elementary one is
// vocab_parallel_cross_entropy (workloads/ops/megatron.h).

/// Compiled pieces over an fp32 copy: it is made beside the maxima (2 bytes read, 4 written per
/// logit), becomes exponentials beside their sum (4 read; 8 written, because torch.compile makes a
/// tensor of what is changed in place and copies it back), then the softmax (4, 4), which is saved.
/// Backward corrects and scales it (4, 4) and casts it (4, 2). Two all-reduces, of one and of two
/// numbers per token. Source: Megatron-Core fusions/fused_cross_entropy.py; that both tensors live
/// at once follows from the peaks of its test case gpt3_mcore_te_tp2_pp2 with and without it.
Tensor native_cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                            const Tensor& labels, int tensor);

/// Transformer Engine's: a kernel reads the logits for maximum and sum of each token (2 bytes per
/// logit), ranks gather three numbers per token, a second kernel writes the gradient over the
/// logits (2, 2). Backward scales it in place (2, 2). No fp32 copy. Source: Transformer Engine
/// pytorch/triton/cross_entropy.py.
Tensor engine_cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                            const Tensor& labels, int tensor);

}  // namespace tessera
