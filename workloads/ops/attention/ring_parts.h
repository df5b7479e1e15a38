#pragma once

#include <cstdint>
#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

/// How keys and values of other context-parallel ranks come.
enum class PartRotation : std::uint8_t {
  all_to_all,  ///< those of the rank before, one step after the other
  all_gather,  ///< all of them at once, beside the attention of the own part
};

/// Attention of PyTorch's context_parallel, of sequences in two pieces from both ends
/// (`enable_load_balance`). q [b, heads, s, d], k and v [b, kv_heads, s, d] with the rank's s; K =
/// b * kv_heads * s * d, e = bytes of an element. Per part a kernel; its result is cast to fp32,
/// and merged with the others by three kernels over it (`convert_to_f32`). Keys and values travel
/// as one buffer of 2 K e bytes. Backward: they come once more by the same way, gradients of
/// queries are summed in fp32, and those of keys and values go round in fp32, 8 K bytes a step,
/// from rank to rank. Saves q, k, v, the output and its log-sum-exp. Ranks share one program: of
/// another rank's part all queries see one half of the keys. Source:
/// torch/distributed/tensor/experimental/_attention.py, _templated_ring_attention, _SDPAMerger,
/// _AllToAllRotater, _AllGatherRotater.
Tensor attention_by_parts(Tape& tape, const std::string& name, const Tensor& q, const Tensor& k,
                          const Tensor& v, AttentionCall call, int ranks, PartRotation rotation);

}  // namespace tessera
