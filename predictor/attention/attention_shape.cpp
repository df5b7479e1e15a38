#include "predictor/attention/attention_shape.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

constexpr double kBlockKeys = 64;
constexpr double kPrologueKeys = 64;  ///< filling the pipeline costs about one key block
constexpr double kBytes = 2;          ///< of an element

double round_up(double value, double unit) {
  return std::ceil(value / unit) * unit;
}

/// FlashAttention-3 gives small heads three warp groups of 64 queries, all others have two.
double block_queries(const AttentionCall& call) {
  const bool three = call.implementation == AttentionImplementation::flash3 && call.head_dim <= 96;
  return three ? 192 : 128;
}

/// Head size below which TensorRT-LLM's rearrangement of Q, K and V gets no faster: per token and
/// head it takes .34, .36 and .62 ns on H100 with heads of 64, 128 and 256 in 16 bit, .32, .38 and
/// .53 with fp8 behind it (measurements/kernels/attention.csv, kernels_2026/attention_fp8.csv).
constexpr double kLeastRearranged = 128;

double rearranged_head(const AttentionCall& call, double head_dim) {
  const bool least = call.implementation == AttentionImplementation::trtllm;
  return least ? std::max(head_dim, kLeastRearranged) : head_dim;
}

/// Causal work counts whole key blocks on the diagonal: half a query block more than half.
double mean_keys(const AttentionExtents& e, bool causal, double queries) {
  if (!causal) return round_up(e.seq_kv, kBlockKeys) + kPrologueKeys;
  constexpr double kDiagonal = 6;  // measured on top of the half block, in keys
  const double earlier = e.seq_kv - e.seq_q;
  const double diagonal = e.seq_q / 2 + std::min(e.seq_q, queries) / 2 + kDiagonal;
  return std::min(earlier + diagonal, round_up(e.seq_kv, kBlockKeys)) + kPrologueKeys;
}

/// Keys that a block goes through at a time. TensorRT-LLM's kernels for Hopper take more of smaller
/// heads (recalled from what generates them).
double key_step(const AttentionCall& call) {
  if (call.implementation != AttentionImplementation::trtllm || call.head_dim > 128)
    return kBlockKeys;
  return call.head_dim > 64 ? 128 : 256;
}

/// A block of queries sees the window of its first one and itself, in whole steps of keys: the mean
/// over where blocks begin within a step.
double keys_in_window(const AttentionCall& call, double queries) {
  const double step = key_step(call), seen = static_cast<double>(call.window) + queries;
  const int begins = static_cast<int>(std::max(1.0, step / queries));
  double sum = 0;
  for (int i = 1; i <= begins; ++i) {
    const double end = i * queries;
    sum += round_up(end, step) - std::floor((end - seen) / step) * step;
  }
  return sum / begins + kPrologueKeys;
}

}  // namespace

AttentionShape attention_shape(const AttentionCall& call, double most_queries) {
  check(call);
  const AttentionExtents e = extents_of(call);
  AttentionShape shape;
  shape.block_queries = std::min(block_queries(call), most_queries);
  shape.sequence_heads = e.batch * e.heads;
  shape.blocks = shape.sequence_heads * std::ceil(e.seq_q / shape.block_queries);
  shape.keys = mean_keys(e, call.causal, shape.block_queries);
  shape.longest = round_up(e.seq_kv, kBlockKeys) + kPrologueKeys;
  if (call.window > 0) {
    const double most = keys_in_window(call, shape.block_queries);
    shape.keys = std::min(shape.keys, most);
    shape.longest = std::min(shape.longest, most);
  }
  shape.head_dim = e.head_dim;
  shape.product_share = (e.head_dim + e.value_dim) / (2 * e.head_dim);
  shape.tanh_share = call.softcap ? 1 : 0;
  shape.group_octaves = std::min(std::log2(e.heads / e.kv_heads), 3.0);
  shape.query_bytes = kBytes * e.batch * e.seq_q * e.heads * e.head_dim;
  shape.rearranged_bytes = shape.query_bytes * rearranged_head(call, e.head_dim) / e.head_dim;
  shape.key_value_bytes = 2 * kBytes * e.batch * e.seq_kv * e.kv_heads * e.head_dim;
  shape.operand_bytes =
      (2 * shape.query_bytes + shape.key_value_bytes) * shape.product_share;  // Q, K, V and O
  shape.causal = call.causal;
  return shape;
}

}  // namespace tessera
