// CaiT: facebookresearch/deit, cait_models.py; Touvron et al., "Going deeper with image
// transformers", 2021. Talking heads between the patches, then two layers in which only the class
// token attends.
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"
#include "workloads/vision/architectures.h"
#include "workloads/vision/image_sequence.h"
#include "workloads/vision/patches.h"

namespace tessera {
namespace {

struct CaitEncoder {
  std::int64_t hidden, heads;

  std::int64_t head_dim() const { return hidden / heads; }
};
constexpr CaitEncoder kExtraExtraSmall{192, 4};
constexpr CaitEncoder kSmall{384, 8};
constexpr int kLayers = 24;
constexpr int kClassLayers = 2;
constexpr std::int64_t kFfnRatio = 4;

/// x + gamma y with a factor per channel.
Tensor scaled_residual(Tape& tape, const std::string& name, const Tensor& x, const Tensor& y) {
  const Tensor gamma = tape.parameter(name + ".gamma", {x.shape.last()});
  return add(tape, name + ".residual", x, multiply(tape, name + ".scale", gamma, y));
}

/// A linear layer over the heads of scores [b, heads, s, s].
Tensor talking_heads(Tape& tape, const std::string& name, const Tensor& scores) {
  const Tensor by_position = permute(tape, scores, {0, 2, 3, 1});
  return permute(tape, linear(tape, name, by_position, scores.sizes()[1]), {0, 3, 1, 2});
}

Tensor feed_forward(Tape& tape, const std::string& name, const Tensor& x) {
  const std::int64_t hidden = x.shape.last();
  const Tensor wide = linear(tape, name + ".up", x, kFfnRatio * hidden);
  return linear(tape, name + ".down", gelu(tape, name + ".gelu", wide), hidden);
}

Tensor merge_heads(Tape& tape, const Tensor& context, const CaitEncoder& e) {
  const Tensor by_token = transpose(tape, context, 1, 2);
  return reshape(tape, by_token, {context.sizes()[0], context.sizes()[2], e.hidden});
}

Tensor talking_attention(Tape& tape, const Tensor& x, const CaitEncoder& e) {
  const std::int64_t b = x.sizes()[0], s = x.sizes()[1];
  const Tensor packed = permute(
      tape,
      view(tape, linear(tape, "attention.qkv", x, 3 * e.hidden), {b, s, 3, e.heads, e.head_dim()}),
      {2, 0, 3, 1, 4});
  const Tensor q = scale(tape, "attention.q_scale", select_first(tape, "attention.q", packed, 0));
  const Tensor k = select_first(tape, "attention.k", packed, 0);
  const Tensor v = select_first(tape, "attention.v", packed, 0);
  const Tensor scores = matmul(tape, "attention.scores", q, transpose(tape, k, 2, 3));
  const Tensor talked = talking_heads(tape, "attention.talk_scores", scores);
  const Tensor weights = softmax(tape, "attention.softmax", talked);
  const Tensor mixed = talking_heads(tape, "attention.talk_weights", weights);
  const Tensor context = matmul(tape, "attention.context", mixed, v);
  return linear(tape, "attention.output", merge_heads(tape, context, e), e.hidden);
}

Tensor layer(Tape& tape, const Tensor& x, const CaitEncoder& e) {
  const Tensor attended = talking_attention(tape, layer_norm(tape, "norm1", x), e);
  const Tensor middle = scaled_residual(tape, "attention", x, attended);
  return scaled_residual(tape, "mlp", middle,
                         feed_forward(tape, "mlp", layer_norm(tape, "norm2", middle)));
}

Tensor class_attention(Tape& tape, const std::string& name, const Tensor& all,
                       const CaitEncoder& e) {
  const std::int64_t b = all.sizes()[0];
  const auto heads = [&](const Tensor& part) {
    const Tensor split =
        view(tape, part, {b, part.elements() / (b * e.hidden), e.heads, e.head_dim()});
    return permute(tape, split, {0, 2, 1, 3});
  };
  const Tensor first = select_first(tape, name + ".class_token", all, 1);
  const Tensor q =
      scale(tape, name + ".q_scale", heads(linear(tape, name + ".q", first, e.hidden)));
  const Tensor k = heads(linear(tape, name + ".k", all, e.hidden));
  const Tensor v = heads(linear(tape, name + ".v", all, e.hidden));
  const Tensor scores = matmul(tape, name + ".scores", q, transpose(tape, k, 2, 3));
  const Tensor context =
      matmul(tape, name + ".context", softmax(tape, name + ".softmax", scores), v);
  return linear(tape, name + ".output", merge_heads(tape, context, e), e.hidden);
}

Tensor class_layer(Tape& tape, const std::string& name, const Tensor& token, const Tensor& patches,
                   const CaitEncoder& e) {
  const Tensor all = concatenate(tape, name + ".cat", {token, patches}, 1);
  const Tensor attended =
      class_attention(tape, name + ".attention", layer_norm(tape, name + ".norm1", all), e);
  const Tensor middle = scaled_residual(tape, name + ".attention", token, attended);
  const Tensor normalized = layer_norm(tape, name + ".norm2", middle);
  return scaled_residual(tape, name + ".mlp", middle,
                         feed_forward(tape, name + ".mlp", normalized));
}

Tensor head(Tape& tape, const Tensor& patches, const CaitEncoder& e, std::int64_t classes) {
  const std::int64_t b = patches.sizes()[0];
  const Tensor trained = tape.parameter("class_token", {1, 1, e.hidden});
  Tensor token = expand(tape, "class_token.expand", trained, {b, 1, e.hidden});
  for (int i = 1; i <= kClassLayers; ++i)
    token = class_layer(tape, "class_layer" + std::to_string(i), token, patches, e);
  const Tensor all = concatenate(tape, "head.cat", {token, patches}, 1);
  const Tensor first = select_first(tape, "head.class_token", layer_norm(tape, "norm", all), 1);
  return linear(tape, "head", first, classes);
}

Tensor embed_patches(Tape& tape, const Tensor& images, const CaitEncoder& e) {
  const Tensor patches = patch_embedding(tape, images, e.hidden);
  const Tensor places = tape.parameter("pos_embed", {1, patches.sizes()[1], e.hidden});
  return contiguous(tape, "embedding.copy", add(tape, "embedding.add", patches, places));
}

}  // namespace

ModelGraph cait_blocks(const ModelSpec& model, const StepOptions& step) {
  const CaitEncoder e =
      model.architecture == VisionArchitecture::cait_s24 ? kSmall : kExtraExtraSmall;
  ImageSequence sequence(model, step);
  sequence.add("embedding", [=](Tape& t, const Tensor& x) { return embed_patches(t, x, e); });
  sequence.add_layers(
      "layer", [=](Tape& t, const Tensor& x) { return layer(t, x, e); }, kLayers);
  return std::move(sequence).finish(
      [&](Tape& t, const Tensor& x) { return head(t, x, e, model.classes); });
}

}  // namespace tessera
