// Vision transformer: torchvision/models/vision_transformer.py, with the attention of
// torch.nn.MultiheadAttention of PyTorch 2.1 (F.multi_head_attention_forward, need_weights = False)
// over [b, patches, hidden]; Dosovitskiy et al., "An image is worth 16x16 words", 2021.
#include "workloads/families/modules.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"
#include "workloads/vision/architectures.h"
#include "workloads/vision/image_sequence.h"
#include "workloads/vision/layers.h"
#include "workloads/vision/patches.h"

namespace tessera {
namespace {

struct VitEncoder {
  int layers;
  std::int64_t hidden, heads, ffn;
};
constexpr VitEncoder kBase{12, 768, 12, 3072};
constexpr VitEncoder kLarge{24, 1024, 16, 4096};

/// Scaled-dot-product attention by composition: both operands are scaled by the root of the factor.
Tensor composed_attention(Tape& tape, const AttentionInput& input) {
  const Tensor q = scale(tape, "attention.q_scale", input.q);
  const Tensor k = scale(tape, "attention.k_scale", transpose(tape, input.k, 2, 3));
  const Tensor scores = matmul(tape, "attention.scores", q, k);
  return matmul(tape, "attention.context", softmax(tape, "attention.softmax", scores), input.v);
}

/// Sequence first inside, although images come first: the packed projection reads another order
/// than row-major, and its results are copied apart.
Tensor self_attention(Tape& tape, const StepOptions& step, const Tensor& x, const VitEncoder& e) {
  const std::int64_t b = x.sizes()[0], s = x.sizes()[1], d = e.hidden / e.heads;
  const Tensor by_place = transpose(tape, x, 0, 1);
  const Tensor packed =
      view(tape, linear(tape, "attention.qkv", by_place, 3 * e.hidden), {s, b, 3, e.hidden});
  const Tensor apart = contiguous(tape, "attention.qkv_copy", permute(tape, packed, {2, 0, 1, 3}));
  const auto heads = [&](const char* name) {
    const Tensor part = view(tape, select_first(tape, name, apart, 0), {s, b * e.heads, d});
    return view(tape, transpose(tape, part, 0, 1), {b, e.heads, s, d});
  };
  const Tensor q = heads("attention.q"), k = heads("attention.k"), v = heads("attention.v");
  const AttentionInput input{q, k, v, false};
  const Tensor context =
      core_attention(tape, step, input, [input](Tape& t) { return composed_attention(t, input); });
  const Tensor merged =
      contiguous(tape, "attention.merge_heads", permute(tape, context, {2, 0, 1, 3}));
  const Tensor out =
      linear(tape, "attention.output", view(tape, merged, {b * s, e.hidden}), e.hidden);
  return transpose(tape, view(tape, out, {s, b, e.hidden}), 0, 1);
}

Tensor encoder_layer(Tape& tape, const StepOptions& step, const Tensor& x, const VitEncoder& e) {
  const Tensor attended = self_attention(tape, step, layer_norm(tape, "ln_1", x), e);
  const Tensor middle = add(tape, "attention.residual", attended, x);
  const Tensor wide = linear(tape, "mlp.up", layer_norm(tape, "ln_2", middle), e.ffn);
  const Tensor changed = linear(tape, "mlp.down", gelu(tape, "mlp.gelu", wide), e.hidden);
  return add(tape, "mlp.residual", middle, changed);
}

Tensor embed(Tape& tape, const Tensor& images, const VitEncoder& e) {
  const Tensor patches = patch_embedding(tape, images, e.hidden);
  const Tensor all = prepend_class_token(tape, patches);
  const Tensor places = tape.parameter("pos_embedding", {1, all.sizes()[1], e.hidden});
  return add(tape, "embedding.add", all, places);
}

}  // namespace

ModelGraph vit_blocks(const ModelSpec& model, const StepOptions& step) {
  const VitEncoder e = model.architecture == VisionArchitecture::vit_l_16 ? kLarge : kBase;
  ImageSequence sequence(model, step);
  sequence.add("embedding", [=](Tape& t, const Tensor& x) { return embed(t, x, e); });
  sequence.add_layers(
      "layer", [=, &step](Tape& t, const Tensor& x) { return encoder_layer(t, step, x, e); },
      e.layers);
  return std::move(sequence).finish([&](Tape& t, const Tensor& x) {
    const Tensor first = select_first(t, "head.class_token", layer_norm(t, "ln", x), 1);
    return linear(t, "head", first, model.classes);
  });
}

}  // namespace tessera
