#pragma once

#include <string>

#include "lab/fit/attention/attention_training.h"

namespace tessera {

/// What the trained form gets right and wrong, as text: parameters, held-out errors by GPU, stack,
/// length and head size, FlashAttention forward+backward, transfer between GPUs, ablations.
std::string attention_study(const AttentionTable& table, const GpuLookup& lookup,
                            const AttentionWeights& weights);

}  // namespace tessera
