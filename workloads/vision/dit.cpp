// Diffusion transformer: facebookresearch/DiT, models.py (recalled), with the attention of timm;
// Peebles and Xie, "Scalable Diffusion Models with Transformers", 2023. On latents of four
// channels; a time and a class condition every layer (adaLN-Zero). Patches come out of a
// convolution by channel and are looked at by patch; sums keep that order of memory through all
// layers.
#include "workloads/families/modules.h"
#include "workloads/ops/attention/packed_attention.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"
#include "workloads/vision/architectures.h"
#include "workloads/vision/image_sequence.h"
#include "workloads/vision/patches.h"

namespace tessera {
namespace dit {
namespace {

constexpr std::int64_t kLatentChannels = 4;
constexpr std::int64_t kOutChannels = 2 * kLatentChannels;  // noise and its variance (learn_sigma)
constexpr std::int64_t kWaves = 256, kFfnRatio = 4;
constexpr std::int32_t kPatchSide = 2;
constexpr const char* kCondition = "condition";

struct DitEncoder {
  int layers;
  std::int64_t hidden, heads;
};

DitEncoder encoder_of(VisionArchitecture architecture) {
  switch (architecture) {
    case VisionArchitecture::dit_s_2:
      return {12, 384, 6};
    case VisionArchitecture::dit_b_2:
      return {12, 768, 12};
    case VisionArchitecture::dit_l_2:
      return {24, 1024, 16};
    default:
      return {28, 1152, 16};  // XL
  }
}

/// What the times and classes of `images` tell every layer: [images, hidden]. One class more stands
/// for none (classifier-free guidance).
void embed_condition(Tape& tape, std::int64_t images, const DitEncoder& e, std::int64_t classes) {
  const Tensor waves = tape.buffer("time", {images, kWaves}, tape.precision());
  const Tensor wide = silu(tape, "time.silu", linear(tape, "time.0", waves, e.hidden));
  const Tensor when = linear(tape, "time.2", wide, e.hidden);
  const Tensor table = tape.parameter("classes.table", {classes + 1, e.hidden});
  const Tensor labels = tape.input("classes", {images}, Precision::int64);
  tape.shared_output(add(tape, "condition.add", when, embedding(tape, "classes", table, labels)));
}

/// The same numbers and sizes in another order of memory; gradients keep theirs.
Tensor laid_out(Tape& tape, const Tensor& x, const StridedShape& shape) {
  const Tensor out = tape.alias(x, shape);
  tape.differentiable({x}, out, [x](Tape& t, auto gradients) { t.add_gradient(x, gradients[0]); });
  return out;
}

/// Between blocks [b, patches, hidden] stands for what lies as [b, hidden, patches].
Tensor by_channel(Tape& tape, const Tensor& x) {
  const Sizes& s = x.sizes();
  return laid_out(tape, x, StridedShape({s[0], s[2], s[1]}).permuted({0, 2, 1}));
}
Tensor block_output(Tape& tape, const Tensor& x) {
  return laid_out(tape, x, StridedShape(x.sizes()));
}

Tensor embed(Tape& tape, const Tensor& latents, const DitEncoder& e, std::int64_t classes) {
  embed_condition(tape, latents.sizes()[0], e, classes);
  const Tensor patches = patch_embedding(tape, latents, e.hidden, kPatchSide);
  const Tensor places =
      tape.buffer("pos_embed", {1, patches.sizes()[1], e.hidden}, tape.precision());
  return block_output(tape, add(tape, "embedding.add", patches, places));
}

/// `count` vectors per image [b, 1, hidden] from the condition.
std::vector<Tensor> modulation(Tape& tape, const Tensor& condition, int count) {
  const std::int64_t b = condition.sizes()[0], hidden = condition.sizes()[1];
  const Tensor active = silu(tape, "adaln.silu", condition);
  const Tensor all = linear(tape, "adaln", active, count * hidden);
  std::vector<Tensor> parts = chunk_last(tape, "adaln.chunk", all, count);
  for (Tensor& part : parts) part = view(tape, part, {b, 1, hidden});
  return parts;
}

/// norm(x) (1 + scale) + shift. The norm copies rows side by side, in backward once more. Source:
/// PyTorch aten/src/ATen/native/layer_norm.cpp, expect_contiguous.
Tensor modulated_norm(Tape& tape, const std::string& name, const Tensor& x, const Tensor& shift,
                      const Tensor& scale) {
  const Tensor rows = tape.remade([=](Tape& t) { return contiguous(t, name + ".rows", x); });
  const Tensor plain = layer_norm(tape, name, rows, NormTerms::none);
  const Tensor factor = add_number(tape, name + ".one", scale);
  return add(tape, name + ".shift", multiply(tape, name + ".scale", plain, factor), shift);
}

/// Scaled-dot-product attention by composition.
Tensor composed_attention(Tape& tape, const AttentionInput& input) {
  const Tensor q = scale(tape, "attention.q_scale", input.q);
  const Tensor scores = matmul(tape, "attention.scores", q, transpose(tape, input.k, 2, 3));
  return matmul(tape, "attention.context", softmax(tape, "attention.softmax", scores), input.v);
}

Tensor self_attention(Tape& tape, const StepOptions& step, const Tensor& x, const DitEncoder& e) {
  const std::int64_t b = x.sizes()[0], s = x.sizes()[1];
  const Tensor packed = view(tape, linear(tape, "attention.qkv", x, 3 * e.hidden),
                             {b, s, 3, e.heads, e.hidden / e.heads});
  const auto parts = unbind(tape, "attention.unbind", permute(tape, packed, {2, 0, 3, 1, 4}), 0);
  const AttentionInput input{parts[0], parts[1], parts[2], false};
  const Tensor context =
      core_attention(tape, step, input, [input](Tape& t) { return composed_attention(t, input); });
  const Tensor merged = reshape(tape, permute(tape, context, {0, 2, 1, 3}), {b, s, e.hidden});
  return linear(tape, "attention.output", merged, e.hidden);
}

Tensor layer(Tape& tape, const StepOptions& step, const Tensor& input, const Tensor& condition,
             const DitEncoder& e) {
  const Tensor x = by_channel(tape, input);
  const auto m = modulation(tape, condition, 6);
  const Tensor attended =
      self_attention(tape, step, modulated_norm(tape, "norm1", x, m[0], m[1]), e);
  const Tensor middle =
      add(tape, "attention.residual", x, multiply(tape, "attention.gate", m[2], attended));
  const Tensor normalized = modulated_norm(tape, "norm2", middle, m[3], m[4]);
  const Tensor wide = linear(tape, "mlp.up", normalized, kFfnRatio * e.hidden);
  const Tensor changed = linear(tape, "mlp.down", gelu(tape, "mlp.gelu", wide), e.hidden);
  const Tensor out = add(tape, "mlp.residual", middle, multiply(tape, "mlp.gate", m[5], changed));
  return block_output(tape, out);
}

/// What was added to each number of the latents, and its variance: [b, 8, side, side].
Tensor head(Tape& tape, const Tensor& input, const Tensor& condition, std::int64_t side) {
  const Tensor x = by_channel(tape, input);
  const std::int64_t b = x.sizes()[0], patches = side / kPatchSide;
  const auto m = modulation(tape, condition, 2);
  const Tensor last = linear(tape, "head", modulated_norm(tape, "norm", x, m[0], m[1]),
                             kPatchSide * kPatchSide * kOutChannels);
  const Tensor split =
      view(tape, last, {b, patches, patches, kPatchSide, kPatchSide, kOutChannels});
  return reshape(tape, permute(tape, split, {0, 5, 1, 3, 2, 4}), {b, kOutChannels, side, side});
}

ModelGraph blocks(const ModelSpec& model, const StepOptions& step) {
  const DitEncoder e = encoder_of(model.architecture);
  const std::int64_t classes = model.classes, side = model.image_size;
  const StridedShape condition({step.micro_batch, e.hidden});
  ImageSequence sequence(model, step, kLatentChannels);
  sequence.add("embedding", [=](Tape& t, const Tensor& x) { return embed(t, x, e, classes); });
  sequence.add_conditioned_layers(
      "layer", {kCondition, condition},
      [=, &step](Tape& t, const Tensor& x, const Tensor& c) { return layer(t, step, x, c, e); },
      e.layers);
  return std::move(sequence).finish(
      [=](Tape& t, const Tensor& x) {
        return head(t, x, t.shared_input(kCondition, condition), side);
      },
      LogitsOf::noise);
}

}  // namespace
}  // namespace dit

ModelGraph dit_blocks(const ModelSpec& model, const StepOptions& step) {
  return dit::blocks(model, step);
}

}  // namespace tessera
