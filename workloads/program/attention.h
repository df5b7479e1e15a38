#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

/// Fused attention kernels that were measured apart. The choice weighs more than the GPU: FA2
/// reaches 0.65 of the tensor peak of an A100 and 0.34 of that of an H100.
enum class AttentionImplementation : std::uint8_t {
  flash2,  ///< FlashAttention-2: mma.sync, Ampere and later
  flash3,  ///< FlashAttention-3: Hopper's wgmma and TMA
  cudnn,   ///< cuDNN's fused attention
  trtllm,  ///< TensorRT-LLM's own context attention
  flash1,  ///< FlashAttention of 2022, and the Triton kernels made after it: Ampere and later
};
inline constexpr std::size_t kAttentionImplementations = 5;
std::string_view name_of(AttentionImplementation implementation);

enum class AttentionDirection : std::uint8_t { forward, backward, forward_backward };

/// One call of fused scaled-dot-product attention, softmax(Q K^T) V: Q of [batch, seq_q, heads,
/// head_dim], K and V of [batch, seq_kv, kv_heads, head_dim], 2 bytes per element.
struct AttentionCall {
  AttentionImplementation implementation = AttentionImplementation::flash2;
  AttentionDirection direction = AttentionDirection::forward;
  bool causal = true;  ///< the last query sees every key; an earlier one fewer
  std::int64_t batch = 1;
  std::int64_t heads = 1;     ///< query heads of this GPU
  std::int64_t kv_heads = 1;  ///< key and value heads; fewer than `heads` = grouped queries
  std::int64_t seq_q = 1, seq_kv = 1;
  std::int64_t head_dim = 1;
  /// Packed documents of this mean length fill the sequence and see only themselves; 0 = one
  /// document. Taken as equally long: unequal ones cost more, by (standard deviation / mean)^2.
  double mean_document = 0;
  std::int64_t value_dim = 0;  ///< of V and the output, where it differs; 0: head_dim
  /// Keys that a query sees at most, the last ones (its own included); 0: all.
  std::int64_t window = 0;
  bool softcap = false;  ///< scores go through a tanh

  auto operator<=>(const AttentionCall&) const = default;
};
/// Throws InputError for sizes below 1, heads that are no multiple of kv_heads, causal with fewer
/// keys than queries, a mean document longer than the sequence.
void check(const AttentionCall& call);

/// The sizes as numbers; packed documents are members of the batch.
struct AttentionExtents {
  double batch = 1, heads = 1, kv_heads = 1, seq_q = 1, seq_kv = 1, head_dim = 1;
  double value_dim = 1;
};
AttentionExtents extents_of(const AttentionCall& call);

/// Pairs of a query and a key that it sees, per head and sequence: seq_q * seq_kv, half of it if
/// causal; within a window w of a causal sequence s w - w^2 / 2.
double visible_pairs(const AttentionCall& call);

/// 4*batch*heads*pairs*head_dim; backward 2.5 times the forward. With values of another size v the
/// products are 2 (head_dim + v) forward and 2 (3 head_dim + 2 v) backward.
double attention_flops(const AttentionCall& call);
/// Compulsory traffic of the operands, each once: Q, K, V in and O out; backward also the
/// gradients.
double attention_bytes(const AttentionCall& call);

}  // namespace tessera
