#include "workloads/program/attention.h"

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

/// Of a pair of query and key: S = QK^T and PV; backward S is computed again, then dV, dP, dQ and
/// dK: three products of the size of a query, two of that of a value.
double flops_per_pair(AttentionDirection direction, double head_dim, double value_dim) {
  const double forward = 2 * (head_dim + value_dim);
  const double backward = 2 * (3 * head_dim + 2 * value_dim);
  switch (direction) {
    case AttentionDirection::forward:
      return forward;
    case AttentionDirection::backward:
      return backward;
    case AttentionDirection::forward_backward:
      return forward + backward;
  }
  return forward;
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
  require(call.value_dim >= 0 && call.window >= 0, "value_dim or window is negative",
          "use 0 for values as large as queries, and for no window");
  if (!problems.empty()) throw InputError(std::move(problems));
}

AttentionExtents extents_of(const AttentionCall& call) {
  AttentionExtents e{static_cast<double>(call.batch),
                     static_cast<double>(call.heads),
                     static_cast<double>(call.kv_heads),
                     static_cast<double>(call.seq_q),
                     static_cast<double>(call.seq_kv),
                     static_cast<double>(call.head_dim),
                     static_cast<double>(call.value_dim > 0 ? call.value_dim : call.head_dim)};
  if (call.mean_document > 0) {
    e.batch *= e.seq_q / call.mean_document;
    e.seq_q = e.seq_kv = call.mean_document;
  }
  return e;
}

double visible_pairs(const AttentionCall& call) {
  const AttentionExtents e = extents_of(call);
  const double all = e.seq_q * e.seq_kv * (call.causal ? 0.5 : 1);
  const auto window = static_cast<double>(call.window);
  if (call.window == 0 || window >= e.seq_kv) return all;
  if (!call.causal) return e.seq_q * window;
  const double cut = std::max(0.0, window - (e.seq_kv - e.seq_q));  // of the first queries
  return std::min(all, e.seq_q * window - cut * cut / 2);
}

double attention_flops(const AttentionCall& call) {
  const AttentionExtents e = extents_of(call);
  return e.batch * e.heads * visible_pairs(call) *
         flops_per_pair(call.direction, e.head_dim, e.value_dim);
}

double attention_bytes(const AttentionCall& call) {
  const AttentionExtents e = extents_of(call);
  const double both = e.head_dim + e.value_dim;
  const double queries = kBytes * e.batch * e.seq_q * e.heads * both;  // and the output
  const double keys = kBytes * e.batch * e.seq_kv * e.kv_heads * both;
  const double forward = queries + keys;
  // Backward reads Q, K, V, O and dO, and writes dQ, dK and dV.
  const double backward = 2 * queries + 2 * keys;
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
