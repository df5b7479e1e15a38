// Llama: Hugging Face transformers 4.35, models/llama/modeling_llama.py, eager mode or with the
// fused kernels that the profile names. With experts Mixtral, transformers 4.40,
// models/mixtral/modeling_mixtral.py: every GPU holds all experts, and runs them one after the
// other.
#include "workloads/families/families.h"
#include "workloads/families/modules.h"
#include "workloads/families/recording.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/experts/expert_loop.h"
#include "workloads/ops/experts/experts.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/transformer.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

Tensor rotary_table(Tape& tape, const ModelSpec& model, const StepOptions& step,
                    const std::string& name) {
  const std::int64_t s = step.sequence_length;
  const Tensor table = tape.input(name, {s, model.head_dim}, Precision::fp32);
  const Tensor ids = tape.input("position_ids", {1, 1, s}, Precision::int64);
  return embedding(tape, name, table, ids);
}

/// `input` with positions turned into queries and keys.
AttentionInput rotated(Tape& tape, const ModelSpec& model, const StepOptions& step,
                       const AttentionInput& input) {
  if (step.framework.fused_rope) {
    const std::int64_t s = step.sequence_length;
    const Tensor q = fused_rope(tape, "rotary.q", input.q, s);
    return {q, fused_rope(tape, "rotary.k", input.k, s), input.v};
  }
  const Tensor cosine = rotary_table(tape, model, step, "rotary.cos");
  const Tensor sine = rotary_table(tape, model, step, "rotary.sin");
  const Tensor q = composed_rope(tape, "rotary.q", input.q, cosine, sine);
  return {q, composed_rope(tape, "rotary.k", input.k, cosine, sine), input.v};
}

/// softmax(q k^T) v of [b, heads, s, d].
Tensor unfused_attention(Tape& tape, const ModelSpec& model, const StepOptions& step,
                         const AttentionInput& input) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const std::int64_t group = model.heads / model.kv_heads;
  const Tensor k_all = repeat_heads(tape, "attention.k_repeat", input.k, 1, group);
  const Tensor v_all = repeat_heads(tape, "attention.v_repeat", input.v, 1, group);
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
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const std::int64_t d = model.head_dim;
  const auto project = [&](const std::string& name, std::int64_t heads, bool norm) {
    const Bias bias = model.qkv_bias ? Bias::epilogue : Bias::none;
    Tensor split = view(tape, linear(tape, name, x, heads * d, bias), {b, s, heads, d});
    if (norm) split = root_mean_square_norm(tape, name + "_norm", split, step.framework);
    return transpose(tape, split, 1, 2);
  };
  const Tensor q = project("attention.q", model.heads, model.qk_norm);
  const Tensor k = project("attention.k", model.kv_heads, model.qk_norm);
  const Tensor v = project("attention.v", model.kv_heads, false);
  const AttentionInput input = rotated(tape, model, step, {q, k, v});
  const Tensor context = core_attention(tape, step, input, [=, &model, &step](Tape& t) {
    return unfused_attention(t, model, step, input);
  });
  const Tensor merged = contiguous(tape, "attention.merge_heads", transpose(tape, context, 1, 2));
  return linear(tape, "attention.output", view(tape, merged, {b, s, model.heads * d}), model.hidden,
                Bias::none);
}

Tensor feed_forward(Tape& tape, const std::string& name, const ModelSpec& model,
                    const StepOptions& step, const Tensor& x) {
  if (step.framework.fused_gate) {  // the two branches are one product
    const Tensor wide = linear(tape, name + ".gate_up", x, 2 * model.ffn, Bias::none);
    return linear(tape, name + ".down", fused_swiglu(tape, name + ".swiglu", wide), model.hidden,
                  Bias::none);
  }
  const Tensor gate = linear(tape, name + ".gate", x, model.ffn, Bias::none);
  const Tensor active = silu(tape, name + ".silu", gate);
  const Tensor up = linear(tape, name + ".up", x, model.ffn, Bias::none);
  const Tensor product = multiply(tape, name + ".gated", active, up);
  return linear(tape, name + ".down", product, model.hidden, Bias::none);
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
  const Tensor table = input_embedding(tape, model.tied_embeddings, model.vocab, model.hidden);
  const Tensor ids =
      tape.input("tokens", {step.micro_batch, step.sequence_length}, Precision::int64);
  tape.output(embedding(tape, "embedding.tokens", table, ids));
}

void layer(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  recomputable_layer(tape, step, x, [=, &model, &step](Tape& t) {
    const FrameworkProfile& profile = step.framework;
    const Tensor normalized = root_mean_square_norm(t, "input_norm", x, profile);
    const Tensor middle = add(t, "attention.residual", x, attention(t, model, step, normalized));
    const Tensor again = root_mean_square_norm(t, "mlp_norm", middle, profile);
    const Tensor changed = model.experts > 0 ? sparse_feed_forward(t, model, step, again)
                                             : feed_forward(t, "mlp", model, step, again);
    return add(t, "mlp.residual", middle, changed);
  });
}

void head(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  const Tensor normalized = root_mean_square_norm(tape, "final_norm", x, step.framework);
  const Tensor table = output_embedding(tape, model.tied_embeddings, model.vocab, model.hidden);
  finish_with_logits(
      tape, step, linear_over_last(tape, "lm_head", normalized, table, {.full_precision = true}));
}

}  // namespace

ModelGraph llama_blocks(const ModelSpec& model, const StepOptions& step) {
  return decoder_of(model, step, embed, layer, head);
}

}  // namespace tessera
