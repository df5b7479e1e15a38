// BLOOM: Hugging Face transformers 4.35, models/bloom/modeling_bloom.py, eager attention.
#include "workloads/families/families.h"
#include "workloads/families/modules.h"
#include "workloads/families/recording.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/megatron.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace bloom {
namespace {

/// softmax(alibi + q k^T) v of [b, heads, s, d]. ALiBi enters as the product's third operand;
/// softmax is in fp32, behind the mask (bf16) or ahead of it (fp16).
Tensor unfused_attention(Tape& tape, const ModelSpec& model, const StepOptions& step,
                         const AttentionInput& input) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const Sizes merged{b * model.heads, s, model.head_dim};
  const Tensor alibi = tape.input("attention.alibi", {b * model.heads, 1, s}, tape.precision());
  const Tensor mask = tape.input("attention.mask", {b, 1, s, s}, Precision::int8);
  const Tensor q = reshape(tape, input.q, merged);
  const Tensor k = reshape(tape, transpose(tape, input.k, 2, 3), {merged[0], model.head_dim, s});
  const Tensor scores =
      view(tape, scaled_bmm(tape, "attention.scores", q, k, alibi), {b, model.heads, s, s});
  const bool early = scores.precision == Precision::fp16;
  const Tensor exact =
      early ? cast(tape, "attention.softmax.to_fp32", scores, Precision::fp32) : scores;
  const Tensor masked =
      masked_fill_(tape, "attention.mask", clone(tape, "attention.mask.clone", exact), mask);
  const Tensor wide = cast(tape, "attention.softmax.to_fp32", masked, Precision::fp32);
  const Tensor weights = cast(tape, "attention.softmax.to_16_bit",
                              softmax(tape, "attention.softmax", wide), scores.precision);
  const Tensor dropped =
      dropout(tape, "attention.dropout", weights, active_dropout(step, model.attention_dropout));
  const Tensor context = bmm(tape, "attention.context", view(tape, dropped, {merged[0], s, s}),
                             reshape(tape, input.v, merged));
  return view(tape, context, {b, model.heads, s, model.head_dim});
}

/// q, k and v of a head lie side by side in one product's result, and are taken out by an index.
Tensor attention(Tape& tape, const ModelSpec& model, const StepOptions& step, const Tensor& x) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const std::int64_t inner = model.heads * model.head_dim;
  const Tensor qkv = view(tape, linear(tape, "attention.qkv", x, 3 * inner),
                          {b, s, model.heads, 3, model.head_dim});
  const auto part = [&](const std::string& name) {
    return transpose(tape, select_first(tape, name, qkv, 3), 1, 2);
  };
  const Tensor q = part("attention.q");
  const Tensor k = part("attention.k");
  const AttentionInput input{q, k, part("attention.v")};
  const Tensor context = core_attention(tape, step, input, [=, &model, &step](Tape& t) {
    return unfused_attention(t, model, step, input);
  });
  const Tensor merged =
      contiguous(tape, "attention.merge_heads", permute(tape, context, {0, 2, 1, 3}));
  return linear(tape, "attention.output", view(tape, merged, {b, s, inner}), model.hidden);
}

/// 0.79788456 x (1 + 0.044715 x x): five kernels.
Tensor gelu_argument(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor outer = map(tape, name + ".mul", {x});
  const Tensor square = map(tape, name + ".mul", {map(tape, name + ".mul", {x}), x});
  return map(tape, name + ".mul", {outer, map(tape, name + ".add", {square})});
}

/// Tanh-approximated gelu as BLOOM's own autograd function composes it: 9 kernels, and 18 that
/// start from x alone (`bloom_gelu_forward`, `bloom_gelu_back`).
Tensor bloom_gelu(Tape& tape, const std::string& name, const Tensor& x) {
  constexpr double kTanhFlops = 10;
  const Tensor half = map(tape, name + ".half", {x});
  const Tensor tangent = map(tape, name + ".tanh", {gelu_argument(tape, name, x)}, kTanhFlops);
  const Tensor out = map(tape, name + ".gate", {half, map(tape, name + ".add", {tangent})});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const auto one = [&](const char* op, const Tensor& a) { return map(t, name + op, {a}); };
    const auto two = [&](const char* op, const Tensor& a, const Tensor& b) {
      return map(t, name + op, {a, b});
    };
    const Tensor again = map(t, name + ".tanh", {gelu_argument(t, name, x)}, kTanhFlops);
    const Tensor rest = one(".sub", two(".mul", again, again));
    const Tensor slope = one(".add", two(".mul", one(".mul", x), x));
    const Tensor curved = two(".mul", one(".half", x), two(".mul", rest, slope));
    const Tensor straight = one(".half", one(".add", again));
    t.add_gradient(x, two(".grad", two(".add", curved, straight), gradients[0]));
  });
  return out;
}

Tensor feed_forward(Tape& tape, const ModelSpec& model, const Tensor& x) {
  const Tensor wide = linear(tape, "mlp.up", x, model.ffn);
  const Tensor active = model.activation == Activation::gelu_new
                            ? bloom_gelu(tape, "mlp.activation", wide)
                            : activate(tape, "mlp.activation", model.activation, wide);
  return linear(tape, "mlp.down", active, model.hidden);
}

/// Slopes of the heads times positions, once per step (`build_alibi_tensor`), and the causal mask
/// (`_prepare_attn_mask`).
void build_biases(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const std::int64_t b = step.micro_batch;
  const std::int64_t s = step.sequence_length;
  const Tensor seen = computed_table(tape, "mask.ones", {b, s}, Precision::int64, {});
  const Tensor powers = computed_table(tape, "alibi.arange", {model.heads}, Precision::int64, {});
  const Tensor slopes =
      computed_table(tape, "alibi.pow", {model.heads, 1}, Precision::fp32, {powers});
  const Tensor sums = computed_table(tape, "alibi.cumsum", {b, s}, Precision::int64, {seen});
  const Tensor places = computed_table(tape, "alibi.sub", {b, s}, Precision::int64, {sums});
  const Tensor seen_places =
      computed_table(tape, "alibi.mul", {b, s}, Precision::int64, {places, seen});
  const Tensor product = computed_table(tape, "alibi.mul", {b, model.heads, s}, Precision::fp32,
                                        {slopes, seen_places});
  tape.shared_output(
      cast(tape, "alibi.cast", view(tape, product, {b * model.heads, 1, s}), tape.precision()));
  const Tensor order = computed_table(tape, "mask.arange", {s}, Precision::int64, {});
  const Tensor later = computed_table(tape, "mask.lt", {s, s}, Precision::int8, {order});
  const Tensor causal = computed_table(tape, "mask.copy", {s, s}, Precision::int8, {later});
  const Tensor padding = computed_table(tape, "mask.not", {b, s}, Precision::int8, {seen});
  tape.shared_output(
      computed_table(tape, "mask.or", {b, 1, s, s}, Precision::int8, {padding, causal}));
}

void embed(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor table = input_embedding(tape, model.tied_embeddings, model.vocab, model.hidden);
  const Tensor ids =
      tape.input("tokens", {step.micro_batch, step.sequence_length}, Precision::int64);
  const Tensor words = embedding(tape, "embedding.tokens", table, ids);
  build_biases(tape, model, step);
  tape.output(layer_norm(tape, "embedding.norm", words));
}

void layer(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const double p = active_dropout(step, model.hidden_dropout);
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  recomputable_layer(tape, step, x, [=, &model, &step](Tape& t) {
    const Tensor attended = attention(t, model, step, layer_norm(t, "ln_attention", x));
    const Tensor middle =
        add(t, "attention.residual", x, dropout(t, "attention.resid_dropout", attended, p));
    const Tensor changed = feed_forward(t, model, layer_norm(t, "ln_mlp", middle));
    return add(t, "mlp.residual", middle, dropout(t, "mlp.dropout", changed, p));
  });
}

}  // namespace
}  // namespace bloom

ModelGraph bloom_blocks(const ModelSpec& model, const StepOptions& step) {
  return decoder_of(model, step, bloom::embed, bloom::layer, decoder_head);
}

}  // namespace tessera
