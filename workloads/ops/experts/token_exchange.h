#pragma once

#include <string>

#include "workloads/ops/experts/experts.h"

namespace tessera {

// Tokens that travel once for each rank that holds one of their experts, as DeepEP and HybridEP
// send them; they are put into the order of experts where they arrive. Between nodes they travel
// once for each node, which the collective's cost says (sim/collectives/token_exchange.h). Source:
// Megatron-Core transformer/moe/{token_dispatcher,fused_a2a}.py, MoEFlexTokenDispatcher.

/// Tokens that arrive at one of the ranks, each of which sends `tokens` tokens to `k` of `experts`
/// experts drawn with equal chances; as many more as `group.rows` exceed the mean.
std::int64_t arriving_tokens(const ExpertGroup& group, std::int64_t tokens, std::int64_t experts,
                             std::int64_t k);

/// How tokens are sent.
struct TokenDispatch {
  std::int64_t arriving = 0;  ///< tokens at each rank
  bool gathers_map = false;  ///< every rank reads the marks [tokens, experts] of all others, a byte
                             ///< each, and finds its rows in them (HybridEP; DeepEP sends counts)
  bool host_waits = true;    ///< for the counts, unless a graph holds it all
};
/// x [tokens, h] on the ranks of its experts, in their order: a kernel that counts what goes where,
/// a gather of marks where there are any, an exchange, a pass over the marks, four kernels that
/// number the rows, a gather. Backward: a sum per token, and an exchange. Source of the marks:
/// DeepEP's branch hybrid-ep, deep_ep/hybrid_ep_buffer.py, metadata_preprocessing (recalled).
Tensor dispatch_tokens(Tape& tape, const std::string& name, const Tensor& x,
                       const ChosenExperts& choice, const ExpertGroup& group,
                       const TokenDispatch& dispatch);
/// Results of experts back to the ranks of their tokens, [tokens, h]: per token a sum over the
/// rank's experts, and an exchange that sums over ranks. Backward: an exchange, and a gather.
Tensor return_tokens(Tape& tape, const std::string& name, const Tensor& rows, std::int64_t tokens,
                     std::int64_t arriving);

}  // namespace tessera
