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

/// The experts of every token.
struct ChosenExperts {
  Tensor probabilities;  ///< [tokens, k], fp32
  Tensor experts;        ///< [tokens, k], int64
  Tensor marks;          ///< [tokens, experts], a byte each
};
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
  bool fused = false;       ///< one kernel each way between logits and choice (Transformer Engine's
                            ///< fused_router)
};

/// Scores of `experts` for every token of x [tokens, h] and the best `k`: a small product in full
/// precision, softmax and top-k.
ChosenExperts score_experts(Tape& tape, const std::string& name, const Tensor& x,
                            std::int64_t experts, std::int64_t k, const Scoring& scoring = {});

/// How chosen tokens are put into the order of their experts.
struct Permutation {
  std::int64_t experts = 0;
  std::int64_t capacity = 0;  ///< rows of every expert; tokens beyond are dropped, free places
                              ///< padded; 0: as many as come
  int tensor = 1;             ///< ranks that hold parts of each expert, and sum the rows' gradient
  bool host_waits = true;     ///< for the counts, to know the sizes; not with a capacity
  bool fused = true;          ///< by Transformer Engine's kernels, else by PyTorch's operators
  std::int64_t ranks = 1;     ///< that share the experts, and tell each other their counts
};
/// The tokens of x in that order: counts, places and a gather of k e per element; backward sums k
/// gradients per token.
Tensor permute_to_experts(Tape& tape, const std::string& name, const Tensor& x,
                          const ChosenExperts& choice, const Permutation& permutation);

/// Both.
RoutedTokens route_to_experts(Tape& tape, const std::string& name, const Tensor& x,
                              std::int64_t experts, std::int64_t k, std::int64_t capacity = 0,
                              int tensor = 1, const Scoring& scoring = {});

/// The ranks that share the experts, as their busiest one sees it.
struct ExpertGroup {
  std::int64_t ranks = 1;
  std::int64_t experts = 0;         ///< of this rank
  std::int64_t rows = 0;            ///< that its experts get
  std::vector<std::int64_t> loads;  ///< of each of its experts
  std::int64_t parts = 1;  ///< of each expert, on ranks with tokens of their own, which they gather

  /// Rows that come from ranks of the group.
  std::int64_t arriving() const { return rows / parts; }
  bool exchanges() const { return ranks > 1 || parts > 1; }
};
/// Each rank sends `rows` to `experts` experts, which are spread evenly over `ranks` ranks. The
/// busiest rank holds the busiest expert, of `imbalance` times the mean.
ExpertGroup busiest_expert_rank(std::int64_t rows, std::int64_t experts, std::int64_t ranks,
                                double imbalance, std::int64_t parts = 1);

/// Rows of tokens, sorted by expert, on the ranks of their experts: an all-to-all of rows * h * e
/// bytes, and a copy into the order of the rank's experts where it has several. Backward: the same
/// the other way round. Nothing for a group of one. `weights` of tokens travel behind them. Ranks
/// that hold parts of the same experts gather what arrives, ahead of the copy: parts * rows * h * e
/// bytes. Source: Megatron-Core transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher.
Tensor dispatch_rows(Tape& tape, const std::string& name, const Tensor& rows,
                     const ExpertGroup& group, const Tensor* weights = nullptr);
/// The way back to the ranks of the tokens, `count` rows for each; parts of experts give parts of
/// sums, which a reduce-scatter adds.
Tensor return_rows(Tape& tape, const std::string& name, const Tensor& rows, std::int64_t count,
                   const ExpertGroup& group);

/// A copy of all rows, and backward one of their gradients: Transformer Engine's Fp8Padding and
/// Fp8Unpadding (pytorch/module/fp8_padding.py), as Megatron-Core's TEGroupedMLP puts them around
/// the experts (transformer/moe/experts.py; both recalled). At most 31 rows an expert more are not
/// counted.
Tensor moved_rows(Tape& tape, const std::string& name, const Tensor& rows);

/// What a grouped product does besides.
struct ExpertLinear {
  bool bias = false;  ///< one per expert, in the product's epilogue; backward one sum of the
                      ///< gradient over each expert's rows
  bool product_each = false;  ///< the host launches a product, and a cast, for every expert
  bool casts_each = false;    ///< every expert's rows and weights are cast by kernels of their own,
                              ///< with a scale of their own
  bool casts_again = false;   ///< x, not its copies in FP8, waits for backward
};
/// One product per expert over its rows of x, with weights [experts, out, in]: a grouped product;
/// backward two more. Saves x. In FP8 and NVFP4 operands are cast as those of `linear_matrix`.
/// Source: Transformer Engine pytorch/module/grouped_linear.py, whose multi_tensor_gemm calls
/// cuBLAS once for each expert, and whose split_quantize casts expert by expert.
Tensor expert_linear(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out,
                     const std::vector<std::int64_t>& loads, const ExpertLinear& options = {});

/// Rows that were multiplied by their weights already, in the kernel that made them; backward a
/// kernel over the weights beside it, and the way back of their gradients in the `group`.
/// Source: Megatron-Core 0.12 transformer/moe/experts.py, permuted_probs.
Tensor weighted_rows(Tape& tape, const std::string& name, const Tensor& rows,
                     const Tensor& probabilities, const ExpertGroup& group);

/// The same by eager kernels behind an activation that has no such kernel: a product in fp32 and a
/// cast; backward a cast, a product with the weights and its cast, a product with the rows and its
/// sum. Saves the rows, too. Source: Megatron-Core transformer/moe/experts.py, TEGroupedMLP,
/// bias_act_func (recalled).
Tensor weigh_rows(Tape& tape, const std::string& name, const Tensor& rows,
                  const Tensor& probabilities, const ExpertGroup& group);

/// Per token the sum of its experts' results: one kernel that reads k e and writes e per element,
/// or where not `fused` atomic additions to zeros; backward one that reads e and writes k e.
Tensor sum_of_experts(Tape& tape, const std::string& name, const Tensor& results,
                      const Sizes& sizes, bool fused);

/// Per token the sum of its experts' results, weighted: one kernel that reads k e and writes e per
/// element; backward one that reads both and writes the gradients of rows and probabilities.
Tensor combine_experts(Tape& tape, const std::string& name, const Tensor& results,
                       const RoutedTokens& routed, const Sizes& sizes);

}  // namespace tessera
