// Feed-forward blocks of Megatron-Core: transformer/mlp.py, and transformer/moe of 0.12.
#include <cmath>

#include "workloads/families/megatron_model.h"
#include "workloads/families/modules.h"
#include "workloads/ops/experts/experts.h"
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

/// Tensor-parallel ranks hold parts of each expert, and all send all tokens; or whole experts, and
/// each sends its part of the sequence (Megatron-Core's --expert-tensor-parallel-size 1).
Tensor MegatronModel::routed_experts(Tape& tape, const Tensor& x) const {
  const bool whole = step_.layout.whole_experts();
  const std::int64_t ffn = expert_ffn_of(model_) / (whole ? 1 : tensor_);
  const Tensor tokens = reshape(tape, x, {x.sizes()[0] * b_, model_.hidden});
  const std::int64_t capacity = expert_capacity(tokens.sizes()[0]);
  const Scoring scoring{model_.router_sigmoid, model_.expert_bias, model_.router_bias,
                        model_.router_groups};
  const RoutedTokens routed = route_to_experts(
      tape, "mlp.router", tokens, model_.experts, model_.experts_per_token, capacity,
      parts_ > 1 ? 1 : tensor_, scoring);  // the gather's backward pass sums otherwise
  const std::int64_t rows = routed.rows.sizes()[0];
  const ExpertGroup group = busiest_expert_rank(rows, model_.experts, step_.layout.expert,
                                                capacity > 0 ? 1 : step_.expert_imbalance);
  const bool gated = llama_ ? gated_ : model_.activation == Activation::swiglu;
  const bool bias = model_.expert_bias;
  const Tensor arrived = dispatch_rows(tape, "mlp.dispatch", routed.rows, group);
  const Tensor wide =
      expert_linear(tape, "mlp.experts.up", arrived, gated ? 2 * ffn : ffn, group.loads, bias);
  const Tensor active =
      gated ? gated_silu(tape, "mlp.experts.swiglu", wide, profile_, model_.activation)
            : gelu(tape, "mlp.experts.gelu", wide);
  const Tensor narrow =
      expert_linear(tape, "mlp.experts.down", active, model_.hidden, group.loads, bias);
  const Tensor returned = return_rows(tape, "mlp.return", narrow, rows, group);
  return combine_experts(tape, "mlp.combine", returned, routed, x.sizes());
}

/// Split as a dense feed-forward is. Source: Megatron-Core transformer/moe/shared_experts.py.
Tensor MegatronModel::shared_experts(Tape& tape, const Tensor& x) const {
  const Tensor out = gated_mlp(tape, "mlp.shared", x, model_.shared_ffn / tensor_);
  if (!model_.shared_gate) return out;
  const Tensor weight = tape.parameter("mlp.shared_gate.weight", {1, model_.hidden});
  const Tensor gate = linear_over_last(tape, "mlp.shared_gate", x, weight, {});
  return multiply(tape, "mlp.shared_gate.multiply", out,
                  sigmoid(tape, "mlp.shared_gate.sigmoid", gate));
}

Tensor MegatronModel::experts(Tape& tape, const Tensor& part) const {
  const bool whole = step_.layout.whole_experts();
  const bool gathers = parts_ > 1 && !whole;
  const Tensor x = gathers ? gather_sequence(tape, "mlp.router", part, parts_) : part;
  Tensor sum = routed_experts(tape, x);
  if (gathers) {
    sum = reduce_scatter_sequence(tape, "mlp.combine", sum, parts_);
  } else if (!whole) {
    tensor_all_reduce(tape, "mlp.combine.all_reduce", sum, tensor_);
  }
  return model_.shared_ffn > 0 ? add(tape, "mlp.shared.add", sum, shared_experts(tape, part)) : sum;
}

Tensor MegatronModel::gated_mlp(Tape& tape, const std::string& name, const Tensor& x,
                                std::int64_t ffn) const {
  Tensor wide;
  if (llama_ && model_.mlp_bias) {
    const Tensor weight = tape.parameter(name + ".up.weight", {2 * ffn, x.shape.last()});
    wide = column_parallel_linear(tape, name + ".up", x, weight, split(),
                                  bias(tape, name + ".up", 2 * ffn));
  } else {
    wide = column(tape, name + ".up", x, 2 * ffn);
  }
  return row(tape, name + ".down",
             gated_silu(tape, name + ".swiglu", wide, profile_, model_.activation));
}

Tensor MegatronModel::feed_forward(Tape& tape, const Tensor& x, LayerKind kind) const {
  if (kind.experts) return experts(tape, x);
  if (gated_) return gated_mlp(tape, "mlp", x, ffn_);
  const Tensor wide = column(tape, "mlp.up", x, ffn_);
  if (llama_ && !model_.mlp_bias)
    return row(tape, "mlp.down", activate(tape, "mlp.activation", model_.activation, wide));
  return row(tape, "mlp.down", bias_gelu(tape, "mlp.bias_gelu", wide, bias(tape, "mlp.up", ffn_)));
}

}  // namespace tessera
