#pragma once

#include <cstdint>
#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// DeepSeek sparse attention: an indexer scores all pairs of a causal sequence, and latent attention
// sees the best tokens of each query alone. s positions, b sequences; e = bytes of an element.
// Sources: DeepSeek-AI, "DeepSeek-V3.2", 2025; inference/model.py beside its weights, Indexer;
// TileLang examples/dsa_sparse_finetune (all recalled).

/// What the indexer compares.
struct IndexOperands {
  Tensor q;        ///< [s, b, heads, d]
  Tensor k;        ///< [s, b, d], one for all of its heads
  Tensor weights;  ///< [s, b, heads] in fp32
};

/// Attention whose keys and values lie in one row per token that all heads share.
struct LatentOperands {
  Tensor q;   ///< [s, b, heads, rank + rope]
  Tensor kv;  ///< [s, b, rank + rope], the first `rank` numbers of which are the value
};

struct ChosenTokens {
  std::int64_t rank = 0;  ///< numbers of a value
  std::int64_t topk = 0;  ///< tokens that a query sees at most
  bool learns = false;    ///< the indexer, from the attention over what it chose
  int tensor = 1;         ///< ranks that share the heads, over which attention is summed
};

/// Tokens that a query of a causal sequence chooses in the mean: k - k^2 / 2s of s, or s / 2 where
/// k is no less than s.
std::int64_t mean_chosen(std::int64_t positions, std::int64_t topk);

/// [s, b, heads, rank]. Forward: (1) scores sum_h w_h relu(q_h k) of the s^2 / 2 pairs and the best
/// k of each row, one kernel that keeps no scores but those, 2 heads d FLOPs a pair; (2) attention
/// over the chosen, 2 (2 rank + rope) a head and pair; where the indexer learns (3) the attention
/// of all heads summed, 2 (rank + rope) a head and pair, and all-reduced over ranks that share the
/// heads. Backward: the sum of output and its
/// gradient, (4) five products for attention's two into a sum of keys in fp32 that begins as zeros
/// and is cast behind; (5) three of the indexer's size over the chosen pairs, and the same around
/// its keys. Saves both kinds of operands, the output, 4 bytes a row and head, and 4 k bytes a row:
/// which tokens; where the indexer learns twice as much again, its scores and the summed attention.
/// Products count as batched ones; rows of keys that several queries choose are read once, as from
/// a cache that holds them. Approximate in time: kernels of this kind were never measured.
Tensor attention_to_chosen(Tape& tape, const std::string& name, const LatentOperands& latent,
                           const IndexOperands& index, const ChosenTokens& chosen);

/// A Hadamard transform of the last dimension: 2e; the same backward. Saves nothing. Source:
/// fast-hadamard-transform (recalled).
Tensor hadamard(Tape& tape, const std::string& name, const Tensor& x);

}  // namespace tessera
