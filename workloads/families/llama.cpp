// Llama: Hugging Face transformers 4.35, models/llama/modeling_llama.py, eager mode or with the
// fused kernels that the profile names. With experts Mixtral, transformers 4.40,
// models/mixtral/modeling_mixtral.py: every GPU holds all experts, and runs them one after the
// other. Tensor-parallel ranks share layers as workloads/families/tensor_share.h says.
#include "workloads/families/families.h"
#include "workloads/families/modules.h"
#include "workloads/families/recording.h"
#include "workloads/families/tensor_share.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/experts/expert_loop.h"
#include "workloads/ops/experts/experts.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/transformer.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace llama {
namespace {

Tensor rotary_table(Tape& tape, const ModelSpec& model, const StepOptions& step,
                    const std::string& name) {
  const std::int64_t s = TensorShare(step).seen();
  const Tensor table = tape.input(name, {s, model.head_dim}, Precision::fp32);
  const Tensor ids = tape.input("position_ids", {1, 1, s}, Precision::int64);
  return embedding(tape, name, table, ids);
}

Tensor norm(Tape& tape, const std::string& name, const Tensor& x, const StepOptions& step) {
  const Tensor weight = TensorShare(step).norm_weight(tape, name, x.shape.last());
  return root_mean_square_norm(tape, name, x, weight, step.framework);
}

/// `input` with positions turned into queries and keys.
AttentionInput rotated(Tape& tape, const ModelSpec& model, const StepOptions& step,
                       const AttentionInput& input) {
  const std::int64_t s = TensorShare(step).seen();
  if (step.framework.fused_rope) {
    const Tensor q = fused_rope(tape, "rotary.q", input.q, s);
    return {q, fused_rope(tape, "rotary.k", input.k, s), input.v};
  }
  if (step.framework.complex_rope) {
    const Tensor q = complex_rope(tape, "rotary.q", input.q, s);
    return {q, complex_rope(tape, "rotary.k", input.k, s), input.v};
  }
  const Tensor cosine = rotary_table(tape, model, step, "rotary.cos");
  const Tensor sine = rotary_table(tape, model, step, "rotary.sin");
  const Tensor q = composed_rope(tape, "rotary.q", input.q, cosine, sine);
  return {q, composed_rope(tape, "rotary.k", input.k, cosine, sine), input.v};
}

/// x[:, :, None, :, :]: slices of all of four dimensions, of whose gradients autograd makes zeros
/// and a copy each; a compiler drops them. Source: transformers, modeling_llama.py, repeat_kv.
Tensor sliced_whole(Tape& tape, const std::string& name, const Tensor& x, const StepOptions& step) {
  if (step.kernels == KernelMode::fused) return x;
  Tensor slice = x;
  for (std::size_t dimension = 0; dimension < x.shape.rank(); ++dimension)
    slice = slice_last(tape, name, slice, x.shape.last());
  return slice;
}

/// softmax(q k^T) v of [b, heads, s, d].
Tensor unfused_attention(Tape& tape, const ModelSpec& model, const StepOptions& step,
                         const AttentionInput& input) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const std::int64_t group = model.heads / model.kv_heads;
  const auto repeated = [&](const std::string& name, const Tensor& x) {
    if (group == 1) return x;
    return repeat_heads(tape, name, sliced_whole(tape, name + ".slice", x, step), 1, group);
  };
  const Tensor k_all = repeated("attention.k_repeat", input.k);
  const Tensor v_all = repeated("attention.v_repeat", input.v);
  const Tensor scores = matmul(tape, "attention.scores", input.q, transpose(tape, k_all, 2, 3));
  const Tensor scaled = scale(tape, "attention.scale", scores);
  const Tensor mask = tape.input("attention.mask", {b, 1, s, s}, tape.precision());
  const Tensor masked = add(tape, "attention.mask_add", scaled, mask);
  const Tensor weights = softmax(tape, "attention.softmax", masked);
  const Tensor dropped =
      dropout(tape, "attention.dropout", weights, active_dropout(step, model.attention_dropout));
  return matmul(tape, "attention.context", dropped, v_all);
}

Tensor attention(Tape& tape, const ModelSpec& model, const StepOptions& step, const Tensor& x) {
  const TensorShare share(step);
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = share.seen();
  const std::int64_t d = model.head_dim;
  const std::int64_t heads = share.of(model.heads);
  const std::int64_t kv_heads = share.of(model.kv_heads);
  const ColumnLayers layers = share.columns(
      tape, "attention.input", x,
      {{"attention.q", heads * d}, {"attention.k", kv_heads * d}, {"attention.v", kv_heads * d}},
      model.qkv_bias ? Bias::epilogue : Bias::none);
  const auto project = [&](const char* head_norm, std::size_t layer) {
    const Tensor rows = layers.run(tape, layer);
    Tensor split = view(tape, rows, {b, s, rows.shape.last() / d, d});
    if (head_norm != nullptr) split = norm(tape, head_norm, split, step);
    return transpose(tape, split, 1, 2);
  };
  const Tensor q = project(model.qk_norm ? "attention.q_norm" : nullptr, 0);
  const Tensor k = project(model.qk_norm ? "attention.k_norm" : nullptr, 1);
  const Tensor v = project(nullptr, 2);
  const AttentionInput input = rotated(tape, model, step, {q, k, v});
  const Tensor context = core_attention(tape, step, input, [=, &model, &step](Tape& t) {
    return unfused_attention(t, model, step, input);
  });
  const Tensor merged = contiguous(tape, "attention.merge_heads", transpose(tape, context, 1, 2));
  return share.row(tape, "attention.output", view(tape, merged, {b, s, heads * d}), model.hidden);
}

Tensor feed_forward(Tape& tape, const std::string& name, const ModelSpec& model,
                    const StepOptions& step, const Tensor& x) {
  const TensorShare share(step);
  const std::int64_t ffn = share.of(model.ffn);
  if (step.framework.fused_gate) {  // the two branches are one product
    const Tensor wide =
        share.columns(tape, name + ".input", x, {{name + ".gate_up", 2 * ffn}}).run(tape, 0);
    return share.row(tape, name + ".down", fused_swiglu(tape, name + ".swiglu", wide),
                     model.hidden);
  }
  const ColumnLayers branches =
      share.columns(tape, name + ".input", x, {{name + ".gate", ffn}, {name + ".up", ffn}});
  const Tensor active = silu(tape, name + ".silu", branches.run(tape, 0));
  const Tensor product = multiply(tape, name + ".gated", active, branches.run(tape, 1));
  return share.row(tape, name + ".down", product, model.hidden);
}

/// What backward makes of an expert without tokens: nothing, but it holds its weights.
void idle_expert(Tape& tape, const std::string& name, const ModelSpec& model,
                 const StepOptions& step) {
  const std::int64_t h = model.hidden;
  const std::int64_t ffn = model.ffn;
  if (step.framework.fused_gate) {
    tape.parameter(name + ".gate_up.weight", {2 * ffn, h});
  } else {
    tape.parameter(name + ".gate.weight", {ffn, h});
    tape.parameter(name + ".up.weight", {ffn, h});
  }
  tape.parameter(name + ".down.weight", {h, ffn});
}

/// Of tokens [b, s, h]: a loop over the experts, each of which takes its tokens' rows and adds its
/// weighted results to theirs.
Tensor sparse_feed_forward(Tape& tape, const ModelSpec& model, const StepOptions& step,
                           const Tensor& x) {
  const std::int64_t h = model.hidden;
  const std::int64_t tokens = x.elements() / h;
  const std::int64_t k = model.experts_per_token;
  const Tensor flat = view(tape, x, {tokens, h});
  const ExpertChoice choice = choose_experts(tape, "mlp.router", flat, model.experts, k);
  Tensor sum = zeros(tape, "mlp.zeros", {tokens, h});
  const auto loads = expert_loads(tokens * k, model.experts, step.expert_imbalance);
  for (std::size_t e = 0; e < loads.size(); ++e) {
    const std::string name = "mlp.expert" + std::to_string(e);
    const Tensor positions = tokens_of_expert(tape, name + ".where", choice.mask, loads[e]);
    if (loads[e] == 0) {
      idle_expert(tape, name, model, step);
      continue;
    }
    const Tensor rows = rows_at(tape, name + ".rows", flat, positions, {loads[e], h});
    const Tensor weights =
        rows_at(tape, name + ".weights", choice.weights, positions, {loads[e], 1});
    const Tensor result = feed_forward(tape, name, model, step, rows);
    const Tensor weighted = multiply(tape, name + ".weighted", result, weights);
    sum = add_rows_at(tape, name + ".index_add", sum, weighted, positions);
  }
  return view(tape, sum, x.sizes());
}

void embed(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const TensorShare share(step);
  const Tensor table =
      input_embedding(tape, model.tied_embeddings, share.vocabulary(model.vocab), model.hidden);
  const Tensor ids = tape.input("tokens", {step.micro_batch, share.seen()}, Precision::int64);
  tape.output(share.embedded(tape, table, ids));
}

Tensor layer_input(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  return tape.block_input("hidden",
                          {step.micro_batch, TensorShare(step).positions(), model.hidden});
}

void layer(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor x = layer_input(tape, model, step);
  recomputable_layer(tape, step, x, [=, &model, &step](Tape& t) {
    const Tensor normalized = norm(t, "input_norm", x, step);
    const Tensor middle = add(t, "attention.residual", x, attention(t, model, step, normalized));
    const Tensor again = norm(t, "mlp_norm", middle, step);
    const Tensor changed = model.experts > 0 ? sparse_feed_forward(t, model, step, again)
                                             : feed_forward(t, "mlp", model, step, again);
    return add(t, "mlp.residual", middle, changed);
  });
}

void head(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const TensorShare share(step);
  const Tensor x = layer_input(tape, model, step);
  const Tensor normalized = norm(tape, "final_norm", x, step);
  const Tensor table =
      output_embedding(tape, model.tied_embeddings, share.head_words(model), model.hidden);
  finish_with_logits(tape, step, share.logits(tape, model, normalized, table), true);
}

}  // namespace
}  // namespace llama

ModelGraph llama_blocks(const ModelSpec& model, const StepOptions& step) {
  ModelGraph graph = decoder_of(model, step, llama::embed, llama::layer, llama::head);
  if (TensorShare(step).sums_norms_late()) {
    graph.blocks[1].partial_parameters =
        2 * model.hidden + (model.qk_norm ? 2 * model.head_dim : 0);
    graph.blocks[2].partial_parameters = model.hidden;
  }
  return graph;
}

}  // namespace tessera
