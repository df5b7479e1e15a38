#pragma once

#include <vector>

#include "lab/fit/attention/attention_fit.h"
#include "predictor/attention/attention_weights.h"

namespace tessera {

/// Forward and forward+backward rows of one shape on one GPU and stack.
struct BackwardPair {
  const AttentionMeasurement* forward = nullptr;
  const AttentionMeasurement* both = nullptr;
};
std::vector<BackwardPair> backward_pairs(const AttentionTable& table);

/// Fitted to the pairs of `table` (FlashAttention-2 on H100, labels read by eye); the default ratio
/// where there is none.
BackwardRatio fit_backward(const AttentionTable& table);
/// From calls of equal shape on one GPU, FlashAttention-1 beside FlashAttention-2 (figures of the
/// latter's authors).
Flash1Ratio fit_flash1(const AttentionTable& table);

/// Held-out calls of a group that targets speak of: 50 us and longer, at least `least_keys` keys.
std::vector<const AttentionMeasurement*> judged_rows(const AttentionGroup& group,
                                                     std::int64_t least_keys);

/// Everything trained of attention. Forward+backward rows of A100 are fitted to nothing.
/// Throws InputError where `table` holds no forward call. Deterministic.
AttentionWeights train_attention(const AttentionTable& table, const GpuLookup& lookup);

}  // namespace tessera
