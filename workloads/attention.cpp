#include "workloads/attention.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, kAttentionImplementations> kImplementationNames{
    "flash2", "flash3", "cudnn", "trtllm", "flash1"};
constexpr double kBytes = 2;  ///< of an element

/// How often `direction` does the work of the forward pass: S = QK^T is computed again, then dV,
/// dP, dQ and dK: five products for two.
double products(AttentionDirection direction) {
  switch (direction) {
    case AttentionDirection::forward:
      return 1;
    case AttentionDirection::backward:
      return 2.5;
    case AttentionDirection::forward_backward:
      return 3.5;
  }
  return 1;
}

}  // namespace

std::string_view name_of(AttentionImplementation implementation) {
  return kImplementationNames[static_cast<std::size_t>(implementation)];
}

void check(const AttentionCall& call) {
  std::vector<Problem> problems;
  const auto require = [&](bool holds, const char* what, const char* hint) {
    if (!holds) problems.push_back({"attention", what, hint});
  };
  const auto sizes = {call.batch, call.heads,  call.kv_heads,
                      call.seq_q, call.seq_kv, call.head_dim};
  require(std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 1; }),
          "a size is below 1", "batch, heads, kv_heads, seq and head_dim are at least 1");
  require(call.kv_heads < 1 || call.heads % call.kv_heads == 0, "heads is no multiple of kv_heads",
          "every key head serves equally many query heads");
  require(!call.causal || call.seq_kv >= call.seq_q, "causal with fewer keys than queries",
          "set seq_kv >= seq_q");
  require(call.mean_document >= 0 && call.mean_document <= static_cast<double>(call.seq_q),
          "the mean document is longer than the sequence", "set it to at most seq_q; 0 = one");
  require(call.mean_document == 0 || call.seq_q == call.seq_kv,
          "packed documents with seq_q unlike seq_kv", "packing is for self-attention");
  if (!problems.empty()) throw InputError(std::move(problems));
}

AttentionExtents extents_of(const AttentionCall& call) {
  AttentionExtents e{static_cast<double>(call.batch),    static_cast<double>(call.heads),
                     static_cast<double>(call.kv_heads), static_cast<double>(call.seq_q),
                     static_cast<double>(call.seq_kv),   static_cast<double>(call.head_dim)};
  if (call.mean_document > 0) {
    e.batch *= e.seq_q / call.mean_document;
    e.seq_q = e.seq_kv = call.mean_document;
  }
  return e;
}

double attention_flops(const AttentionCall& call) {
  const AttentionExtents e = extents_of(call);
  const double forward = 4 * e.batch * e.heads * e.seq_q * e.seq_kv * e.head_dim;
  return products(call.direction) * forward * (call.causal ? 0.5 : 1);
}

double attention_bytes(const AttentionCall& call) {
  const AttentionExtents e = extents_of(call);
  const double queries = kBytes * e.batch * e.seq_q * e.heads * e.head_dim;
  const double keys = kBytes * e.batch * e.seq_kv * e.kv_heads * e.head_dim;
  const double forward = 2 * queries + 2 * keys;
  // Backward reads Q, K, V, O and dO, and writes dQ, dK and dV.
  const double backward = 4 * queries + 4 * keys;
  switch (call.direction) {
    case AttentionDirection::forward:
      return forward;
    case AttentionDirection::backward:
      return backward;
    case AttentionDirection::forward_backward:
      return forward + backward;
  }
  return forward;
}

}  // namespace tessera
