#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/graph/tape.h"

namespace tessera {

// A mixture of experts without dropped tokens, as Megatron-Core runs it: tokens are sorted by
// expert, each expert multiplies as many as it got, in one grouped product. Sources: Megatron-Core
// transformer/moe/{router,token_dispatcher,experts}.py; Gale et al., "MegaBlocks", 2023.

/// Rows per expert, which sum to `rows`: the first gets `imbalance` times the mean, the others
/// share the rest evenly. `imbalance` >= 1, at most `experts`.
std::vector<std::int64_t> expert_loads(std::int64_t rows, std::int64_t experts, double imbalance);

/// Tokens in the order of their experts.
struct RoutedTokens {
  Tensor rows;           ///< [tokens * k, h]
  Tensor probabilities;  ///< [tokens, k], fp32
};

/// How a router makes scores of logits.
struct Scoring {
  bool sigmoid = false;     ///< in place of softmax
  bool bias = false;        ///< the logits have one
  bool correction = false;  ///< a number per expert is added for the choice alone, without gradient
  std::int64_t groups = 0;  ///< of experts: the best groups are chosen first, by the sum of their
                            ///< two best scores (two top-k, a sum, a mask, a fill)
};

/// Scores of `experts` for every token of x [tokens, h], the best `k`, and their tokens sorted: a
/// small product in full precision, softmax, top-k, a histogram that the host waits for, a sort and
/// a gather of k e per element; backward sums k gradients per token. With `capacity` rows for every
/// expert, tokens beyond are dropped and free places padded: the host need not wait. Where
/// `tensor` ranks hold parts of each expert, the rows' gradient is summed over them.
RoutedTokens route_to_experts(Tape& tape, const std::string& name, const Tensor& x,
                              std::int64_t experts, std::int64_t k, std::int64_t capacity = 0,
                              int tensor = 1, const Scoring& scoring = {});

/// The ranks that share the experts, as their busiest one sees it.
struct ExpertGroup {
  std::int64_t ranks = 1;
  std::int64_t experts = 0;         ///< of this rank
  std::int64_t rows = 0;            ///< that its experts get
  std::vector<std::int64_t> loads;  ///< of each of its experts
};
/// Each rank sends `rows` to `experts` experts, which are spread evenly over `ranks` ranks. The
/// busiest rank holds the busiest expert, of `imbalance` times the mean.
ExpertGroup busiest_expert_rank(std::int64_t rows, std::int64_t experts, std::int64_t ranks,
                                double imbalance);

/// Rows of tokens, sorted by expert, on the ranks of their experts: an all-to-all of rows * h * e
/// bytes, and a copy into the order of the rank's experts where it has several. Backward: the same
/// the other way round. Nothing for a group of one.
/// Source: Megatron-Core transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher.
Tensor dispatch_rows(Tape& tape, const std::string& name, const Tensor& rows,
                     const ExpertGroup& group);
/// The way back to the ranks of the tokens, `count` rows for each.
Tensor return_rows(Tape& tape, const std::string& name, const Tensor& rows, std::int64_t count,
                   const ExpertGroup& group);

/// One product per expert over its rows of x, with weights [experts, out, in]: a grouped product;
/// backward two more. Saves x. A bias per expert joins the product's epilogue; backward one sum of
/// the gradient over each expert's rows.
Tensor expert_linear(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out,
                     const std::vector<std::int64_t>& loads, bool bias = false);

/// Per token the sum of its experts' results, weighted: one kernel that reads k e and writes e per
/// element; backward one that reads both and writes the gradients of rows and probabilities.
Tensor combine_experts(Tape& tape, const std::string& name, const Tensor& results,
                       const RoutedTokens& routed, const Sizes& sizes);

}  // namespace tessera
