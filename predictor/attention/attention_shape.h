#pragma once

#include "workloads/program/attention.h"

namespace tessera {

/// What the time of the forward pass depends on.
struct AttentionShape {
  double block_queries = 0;   ///< of a thread block
  double blocks = 0;          ///< thread blocks: one per head and `block_queries`
  double sequence_heads = 0;  ///< sequences times query heads
  double keys = 0;            ///< mean keys per block, whole key blocks of 64 and a prologue of 64
  double longest = 0;         ///< keys of the block that sees most
  double head_dim = 0;
  double product_share = 1;  ///< mean size of queries and values over head_dim
  double tanh_share = 0;     ///< 1: a tanh per score beside the exponential
  double group_octaves = 0;  ///< log2(heads / kv_heads), at most 3
  double operand_bytes = 0;  ///< Q, K, V and O
  double query_bytes = 0;    ///< Q alone
  /// Q as a server rearranges it: small heads count as large as its kernel takes them at least.
  double rearranged_bytes = 0;
  double key_value_bytes = 0;  ///< K and V
  bool causal = false;
};
/// Queries of the largest thread block of any kernel.
inline constexpr double kMostBlockQueries = 192;

/// Thread blocks have the queries of the kernels that were timed, at most `most_queries`.
/// Throws InputError for sizes below 1, heads that are no multiple of kv_heads, causal with fewer
/// keys than queries, a mean document longer than the sequence.
AttentionShape attention_shape(const AttentionCall& call, double most_queries = kMostBlockQueries);

}  // namespace tessera
