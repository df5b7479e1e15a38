// Feed-forward blocks of Megatron-Core: transformer/mlp.py, and transformer/moe of 0.12.
#include <cmath>

#include "workloads/families/megatron_model.h"
#include "workloads/families/modules.h"
#include "workloads/ops/experts/experts.h"
#include "workloads/ops/experts/token_exchange.h"
#include "workloads/ops/experts/weighted_bias.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {

/// Rows that every expert's buffer has for the `tokens` of one rank; 0: as many as come.
std::int64_t MegatronModel::expert_capacity(std::int64_t tokens) const {
  const double mean =
      static_cast<double>(tokens * model_.experts_per_token) / static_cast<double>(model_.experts);
  return static_cast<std::int64_t>(std::ceil(mean * step_.expert_capacity_factor));
}

/// Whether tokens travel once per rank, not once per expert.
bool MegatronModel::sends_tokens() const {
  return sends_tokens_once(profile_.expert_dispatcher) && step_.layout.expert > 1;
}

/// Whether a rank routes its own part of the sequence, and ranks that hold parts of the same
/// experts gather what arrives at them; else every tensor-parallel rank routes all tokens: where
/// they hold all of them, and, under dispatchers that send tokens once for each rank, behind a
/// gather. Source: Megatron-Core transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher
/// (recalled).
bool MegatronModel::routes_own_tokens() const {
  return parts_ == tensor_ && (!sends_tokens() || step_.layout.expert_parts() == 1);
}

/// Whether each expert's matrices are cast by kernels of their own: Transformer Engine casts all at
/// once where scales come from earlier steps alone (pytorch/csrc/extensions/cast.cpp,
/// split_quantize, fused_multi_cast_transpose).
bool MegatronModel::casts_each_expert() const {
  return profile_.products_per_expert && is_cast_for_products(step_.precision) &&
         (step_.precision == Precision::fp4 || profile_.fp8_scaling != Fp8Scaling::delayed);
}

/// Rows that the products read: in FP8 and NVFP4 Transformer Engine wants multiples of 16 (mxfp8,
/// nvfp4: 32) of every expert, so all rows are copied to where each expert's begin at one. HybridEP
/// puts them there as they arrive; buffers of a capacity that is a multiple need no copy.
bool MegatronModel::pads_experts(std::int64_t capacity) const {
  if (!profile_.products_per_expert || !is_cast_for_products(step_.precision)) return false;
  if (sends_tokens() && profile_.expert_dispatcher == ExpertDispatcher::hybridep) return false;
  const bool by_blocks =
      step_.precision == Precision::fp4 || profile_.fp8_scaling == Fp8Scaling::mxfp8;
  const std::int64_t rows =
      capacity * step_.layout.expert * (routes_own_tokens() ? step_.layout.expert_parts() : 1);
  return rows == 0 || rows % (by_blocks ? 32 : 16) != 0;
}

bool MegatronModel::gates_experts() const {
  return llama_ ? gated_ : model_.activation == Activation::swiglu;
}

/// Whether the activation's kernel multiplies by a token's weights: Megatron-Core has such kernels
/// for gated activations and squared ReLU (transformer/moe/experts.py, bias_act_func; Megatron-
/// Bridge's Nemotron sets use_fused_weighted_squared_relu; recalled).
bool MegatronModel::weighs_in_kernel() const {
  return gates_experts() || (llama_ && model_.activation == Activation::relu_squared);
}

Tensor MegatronModel::activated_experts(Tape& tape, const Tensor& wide) const {
  if (gates_experts())
    return gated_silu(tape, "mlp.experts.swiglu", wide, profile_, model_.activation);
  return llama_ ? activate(tape, "mlp.experts.activation", model_.activation, wide)
                : gelu(tape, "mlp.experts.gelu", wide);
}

/// Both products of the experts, and what lies between them.
Tensor MegatronModel::multiplied_experts(Tape& tape, const Tensor& rows, const Tensor& weights,
                                         const ExpertGroup& group) const {
  const std::int64_t ffn = expert_ffn_of(model_) / step_.layout.expert_parts();
  const ExpertLinear linear{.bias = model_.expert_bias,
                            .product_each = profile_.products_per_expert,
                            .casts_each = casts_each_expert(),
                            .casts_again = step_.recomputes("moe_act")};
  const bool apart = linear.bias && profile_.expert_bias_apart;
  Tensor wide =
      expert_linear(tape, "mlp.experts.up", rows, gates_experts() ? 2 * ffn : ffn, group.loads,
                    {linear.bias && !apart, linear.product_each, linear.casts_each});
  if (apart) wide = add_expert_bias(tape, "mlp.experts.up", wide, group.loads);
  const bool weighs = profile_.weights_in_activation || sends_tokens();  // which have no other way
  const bool apart_weights = weighs && !weighs_in_kernel();
  const ExpertGroup sent = sends_tokens() ? ExpertGroup{} : group;  // weights of tokens that stay
  const auto activation = [=, this](Tape& t) {
    const Tensor active = activated_experts(t, wide);
    return apart_weights ? weigh_rows(t, "mlp.experts", active, weights, sent) : active;
  };
  Tensor active = step_.recomputes("moe_act") ? tape.remade(activation) : activation(tape);
  if (weighs && !apart_weights) active = weighted_rows(tape, "mlp.experts", active, weights, sent);
  ExpertLinear down = linear;
  down.bias = linear.bias && !weighs;
  const Tensor out =
      expert_linear(tape, "mlp.experts.down", active, model_.hidden, group.loads, down);
  if (!linear.bias || !weighs) return out;
  return add_weighted_bias(tape, "mlp.experts.down", out, weights, group.loads);
}

/// The same between the copies that make an expert's rows a multiple of what products in FP8 want.
Tensor MegatronModel::experts_of_arrived(Tape& tape, const Tensor& rows, const Tensor& weights,
                                         const ExpertGroup& group, std::int64_t capacity) const {
  if (!pads_experts(capacity)) return multiplied_experts(tape, rows, weights, group);
  const Tensor padded = moved_rows(tape, "mlp.experts.pad", rows);
  const Tensor results = multiplied_experts(tape, padded, weights, group);
  return moved_rows(tape, "mlp.experts.unpad", results);
}

bool MegatronModel::waits_for_counts() const {
  return profile_.cuda_graphs != CudaGraphs::full_iteration;
}

Tensor MegatronModel::tokens_sent_once(Tape& tape, const Tensor& tokens,
                                       const ChosenExperts& choice, const ExpertGroup& group,
                                       std::int64_t capacity) const {
  const std::int64_t count = tokens.sizes()[0];
  const std::int64_t arriving =
      arriving_tokens(group, count, model_.experts, model_.experts_per_token);
  const Tensor arrived =
      dispatch_tokens(tape, "mlp.dispatch", tokens, choice, group,
                      {.arriving = arriving,
                       .gathers_map = profile_.expert_dispatcher == ExpertDispatcher::hybridep,
                       .host_waits = waits_for_counts()});
  const Tensor narrow = experts_of_arrived(tape, arrived, choice.probabilities, group, capacity);
  return return_tokens(tape, "mlp.return", narrow, count, arriving);
}

Tensor MegatronModel::routed_experts(Tape& tape, const Tensor& x) const {
  const Tensor tokens = reshape(tape, x, {x.sizes()[0] * b_, model_.hidden});
  const std::int64_t count = tokens.sizes()[0];
  const std::int64_t capacity = expert_capacity(count);
  const Scoring scoring{model_.router_sigmoid, model_.expert_bias, model_.router_bias,
                        model_.router_groups, profile_.fused_router};
  const ChosenExperts choice =
      score_experts(tape, "mlp.router", tokens, model_.experts, model_.experts_per_token, scoring);
  const std::int64_t rows =
      capacity > 0 ? model_.experts * capacity : count * model_.experts_per_token;
  const ExpertGroup group = busiest_expert_rank(
      rows, model_.experts, step_.layout.expert, capacity > 0 ? 1 : step_.expert_imbalance,
      routes_own_tokens() ? step_.layout.expert_parts() : 1);
  if (sends_tokens())
    return view(tape, tokens_sent_once(tape, tokens, choice, group, capacity), x.sizes());
  const bool fused = profile_.expert_dispatcher != ExpertDispatcher::all_to_all;
  const Permutation permutation{.experts = model_.experts,
                                .capacity = capacity,
                                .tensor = parts_ > 1 ? 1 : tensor_,  // the gather's backward pass
                                                                     // sums otherwise
                                .host_waits = waits_for_counts(),
                                .fused = fused,
                                .ranks = group.ranks};
  const Tensor sorted = permute_to_experts(tape, "mlp.router", tokens, choice, permutation);
  const bool in_activation = profile_.weights_in_activation;
  const Tensor arrived = dispatch_rows(tape, "mlp.dispatch", sorted, group,
                                       in_activation ? &choice.probabilities : nullptr);
  const Tensor narrow = experts_of_arrived(tape, arrived, choice.probabilities, group, capacity);
  const Tensor returned = return_rows(tape, "mlp.return", narrow, rows, group);
  return in_activation ? sum_of_experts(tape, "mlp.combine", returned, x.sizes(), fused)
                       : combine_experts(tape, "mlp.combine", returned,
                                         {sorted, choice.probabilities}, x.sizes());
}

/// Split as a dense feed-forward is. Source: Megatron-Core transformer/moe/shared_experts.py.
Tensor MegatronModel::shared_experts(Tape& tape, const Tensor& x) const {
  const Tensor out = plain_or_gated_mlp(tape, "mlp.shared", x, model_.shared_ffn / tensor_);
  if (!model_.shared_gate) return out;
  const Tensor weight = tape.parameter("mlp.shared_gate.weight", {1, model_.hidden});
  const Tensor gate = linear_over_last(tape, "mlp.shared_gate", x, weight, {});
  return multiply(tape, "mlp.shared_gate.multiply", out,
                  sigmoid(tape, "mlp.shared_gate.sigmoid", gate));
}

/// What a layer of experts gives, run again in backward as a whole or in parts where the step says
/// so (Megatron's --recompute-modules).
Tensor MegatronModel::experts(Tape& tape, const Tensor& part) const {
  if (!step_.recomputes("moe")) return all_experts(tape, part);
  return tape.checkpoint({part}, [=, this](Tape& t) { return all_experts(t, part); });
}

Tensor MegatronModel::all_experts(Tape& tape, const Tensor& part) const {
  const bool own = routes_own_tokens();
  const bool gathers = parts_ > 1 && !own;
  const Tensor x = gathers ? gather_sequence(tape, "mlp.router", part, parts_) : part;
  Tensor sum = routed_experts(tape, x);
  if (gathers) {
    sum = reduce_scatter_sequence(tape, "mlp.combine", sum, parts_);
  } else if (!own) {
    tensor_all_reduce(tape, "mlp.combine.all_reduce", sum, tensor_);
  }
  if (model_.shared_ffn == 0) return sum;
  const auto shared = [=, this](Tape& t) { return shared_experts(t, part); };
  const bool again = step_.recomputes("shared_experts");
  return add(tape, "mlp.shared.add", sum, again ? tape.checkpoint({part}, shared) : shared(tape));
}

Tensor MegatronModel::gated_mlp(Tape& tape, const std::string& name, const Tensor& x,
                                std::int64_t ffn) const {
  const Bias added = llama_ && model_.mlp_bias ? Bias::epilogue : Bias::none;
  const Tensor wide = column(tape, name + ".up", x, 2 * ffn, added);
  return row(tape, name + ".down",
             gated_silu(tape, name + ".swiglu", wide, profile_, model_.activation));
}

/// Without biases.
Tensor MegatronModel::plain_or_gated_mlp(Tape& tape, const std::string& name, const Tensor& x,
                                         std::int64_t ffn) const {
  if (gated_) return gated_mlp(tape, name, x, ffn);
  const Tensor wide = column(tape, name + ".up", x, ffn);
  return row(tape, name + ".down", activate(tape, name + ".activation", model_.activation, wide));
}

Tensor MegatronModel::feed_forward(Tape& tape, const Tensor& x, LayerKind kind) const {
  if (kind.experts) return experts(tape, x);
  if (!step_.recomputes("mlp")) return dense_feed_forward(tape, x);
  return tape.checkpoint({x}, [=, this](Tape& t) { return dense_feed_forward(t, x); });
}

Tensor MegatronModel::dense_feed_forward(Tape& tape, const Tensor& x) const {
  if (gated_ || (llama_ && !model_.mlp_bias)) return plain_or_gated_mlp(tape, "mlp", x, ffn_);
  const Tensor wide = column(tape, "mlp.up", x, ffn_);
  return row(tape, "mlp.down", bias_gelu(tape, "mlp.bias_gelu", wide, bias(tape, "mlp.up", ffn_)));
}

}  // namespace tessera
