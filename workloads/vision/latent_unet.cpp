// The U-Net of latent diffusion (Stable Diffusion 1): diffusers 0.27,
// models/unets/unet_2d_condition.py; Rombach et al., 2022. On latents of four channels, with text
// of 77 tokens of 768. One block: its shortcuts span all of it.
#include <array>
#include <vector>

#include "workloads/families/modules.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"
#include "workloads/ops/vision/convolution.h"
#include "workloads/vision/architectures.h"
#include "workloads/vision/image_sequence.h"

namespace tessera {
namespace {

constexpr std::int64_t kChannels = 320, kTime = 1280, kHeads = 8, kText = 77, kTextWidth = 768;
constexpr std::array<std::int64_t, 4> kMultiples{1, 2, 4, 4};
constexpr std::size_t kAttendingLevels = 3;
constexpr std::int64_t kLatentChannels = 4;

/// Statistics of 32 groups of channels, and their use: a kernel each; backward three.
/// Source: PyTorch aten/src/ATen/native/cuda/group_norm_kernel.cu.
Tensor group_norm(Tape& tape, const std::string& name, const Tensor& x) {
  constexpr std::int64_t kGroups = 32;
  const std::int64_t channels = x.sizes()[1];
  const Tensor weight = tape.parameter(name + ".weight", {channels});
  const Tensor bias = tape.parameter(name + ".bias", {channels});
  const Tensor moments =
      tape.make(name + ".moments", StridedShape({x.sizes()[0] * kGroups, 2}), Precision::fp32);
  const Tensor out = tape.make(name, x.shape.dense(), x.precision);
  tape.launch(name + ".moments", reduction_kernel(x), {x}, {moments});
  tape.launch(name, pointwise_kernel(out, 2), {x, moments, weight, bias}, {out});
  tape.differentiable({x, weight, bias}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", x.shape.dense(), x.precision);
    const Tensor grad_weight = t.make(name + ".weight.grad", weight.shape, weight.precision);
    const Tensor grad_bias = t.make(name + ".bias.grad", bias.shape, bias.precision);
    t.launch(name + ".sums", reduction_kernel(x), {gradients[0], x}, {moments});
    t.launch(name + ".backward", pointwise_kernel(grad, 4), {gradients[0], x, moments, weight},
             {grad});
    t.launch(name + ".gamma_beta", reduction_kernel(moments), {moments}, {grad_weight, grad_bias});
    t.add_gradient(x, grad);
    t.add_gradient(weight, grad_weight);
    t.add_gradient(bias, grad_bias);
  });
  return out;
}

/// [b, c, h, w] twice as high and wide, nearest neighbours: reads e, writes 4 e; backward the other
/// way round.
Tensor enlarged(Tape& tape, const std::string& name, const Tensor& x) {
  const Sizes sizes{x.sizes()[0], x.sizes()[1], 2 * x.sizes()[2], 2 * x.sizes()[3]};
  const Tensor out = tape.make(name, StridedShape(sizes), x.precision);
  tape.launch(name, pointwise_kernel(out, 0), {x}, {out});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", x.shape.dense(), x.precision);
    t.launch(name + ".backward", pointwise_kernel(out, 1), {gradients[0]}, {grad});
    t.add_gradient(x, grad);
  });
  return out;
}

Tensor convolved(Tape& tape, const std::string& name, const Tensor& x, std::int64_t channels,
                 std::int32_t window, std::int32_t stride = 1) {
  return conv2d(tape, name, x,
                {.out_channels = channels,
                 .window = window,
                 .stride = stride,
                 .padding = window / 2,
                 .bias = true});
}

class LatentUNet {
 public:
  explicit LatentUNet(const StepOptions& step) : step_(step) {}

  Tensor run(Tape& tape, const Tensor& latents) {
    embed_time(tape, latents.sizes()[0]);
    text_ = tape.buffer("text", {latents.sizes()[0], kText, kTextWidth}, tape.precision());
    Tensor x = convolved(tape, "conv_in", latents, kChannels, 3);
    skipped_.push_back(x);
    for (std::size_t level = 0; level < kMultiples.size(); ++level) x = down(tape, x, level);
    x = residual_block(tape, "mid.0", x, kChannels * kMultiples.back());
    x = residual_block(tape, "mid.2", transformer(tape, "mid.1", x), x.sizes()[1]);
    for (std::size_t level = kMultiples.size(); level-- > 0;) x = up(tape, x, level);
    const Tensor last = silu(tape, "out.silu", group_norm(tape, "out.norm", x));
    return convolved(tape, "conv_out", last, kLatentChannels, 3);
  }

 private:
  void embed_time(Tape& tape, std::int64_t images) {
    const Tensor waves = tape.buffer("time", {images, kChannels}, tape.precision());
    const Tensor wide = silu(tape, "time.silu", linear(tape, "time.0", waves, kTime));
    time_ = silu(tape, "time.silu_all", linear(tape, "time.2", wide, kTime));
  }

  Tensor down(Tape& tape, Tensor x, std::size_t level) {
    const std::string name = "down" + std::to_string(level);
    for (const char* part : {".0", ".1"}) {
      x = residual_block(tape, name + part, x, kChannels * kMultiples[level]);
      if (level < kAttendingLevels) x = transformer(tape, name + part + ".attention", x);
      skipped_.push_back(x);
    }
    if (level + 1 == kMultiples.size()) return x;
    x = convolved(tape, name + ".downsample", x, x.sizes()[1], 3, 2);
    skipped_.push_back(x);
    return x;
  }

  Tensor up(Tape& tape, Tensor x, std::size_t level) {
    const std::string name = "up" + std::to_string(level);
    for (const char* part : {".0", ".1", ".2"}) {
      x = concatenate(tape, name + part + ".cat", {x, skipped_.back()}, 1);
      skipped_.pop_back();
      x = residual_block(tape, name + part, x, kChannels * kMultiples[level]);
      if (level < kAttendingLevels) x = transformer(tape, name + part + ".attention", x);
    }
    if (level == 0) return x;
    return convolved(tape, name + ".upsample", enlarged(tape, name + ".enlarge", x), x.sizes()[1],
                     3);
  }

  Tensor residual_block(Tape& tape, const std::string& name, const Tensor& x,
                        std::int64_t channels) {
    const Tensor first = silu(tape, name + ".silu_1", group_norm(tape, name + ".norm_1", x));
    const Tensor once = convolved(tape, name + ".conv_1", first, channels, 3);
    const Tensor when = linear(tape, name + ".time", time_, channels);
    const Tensor moved =
        add(tape, name + ".add_time", once, view(tape, when, {x.sizes()[0], channels, 1, 1}));
    const Tensor second = silu(tape, name + ".silu_2", group_norm(tape, name + ".norm_2", moved));
    const Tensor twice = convolved(tape, name + ".conv_2", second, channels, 3);
    const bool same = x.sizes()[1] == channels;
    return add(tape, name + ".residual",
               same ? x : convolved(tape, name + ".shortcut", x, channels, 1), twice);
  }

  Tensor attend(Tape& tape, const std::string& name, const Tensor& x, const Tensor& source) {
    const std::int64_t width = x.shape.last();
    const auto heads = [&](const char* part, const Tensor& from) {
      const Tensor flat = linear(tape, name + part, from, width, Bias::none);
      return permute(tape,
                     view(tape, flat, {from.sizes()[0], from.sizes()[1], kHeads, width / kHeads}),
                     {0, 2, 1, 3});
    };
    const Tensor q = heads(".q", x), k = heads(".k", source), v = heads(".v", source);
    const AttentionInput input{q, k, v, false};
    const Tensor context = core_attention(tape, step_, input, [=](Tape& t) {
      const Tensor scores = matmul(t, name + ".scores", scale(t, name + ".scale", input.q),
                                   transpose(t, input.k, 2, 3));
      return matmul(t, name + ".context", softmax(t, name + ".softmax", scores), input.v);
    });
    const Tensor merged = contiguous(tape, name + ".merge", permute(tape, context, {0, 2, 1, 3}));
    return linear(tape, name + ".output", view(tape, merged, x.sizes()), width);
  }

  /// Self-attention, attention to the text and a gated feed-forward, between convolutions of 1.
  Tensor transformer(Tape& tape, const std::string& name, const Tensor& image) {
    const Sizes sizes = image.sizes();
    const std::int64_t width = sizes[1], positions = sizes[2] * sizes[3];
    const Tensor in =
        convolved(tape, name + ".in", group_norm(tape, name + ".norm", image), width, 1);
    Tensor x = contiguous(tape, name + ".to_tokens",
                          transpose(tape, view(tape, in, {sizes[0], width, positions}), 1, 2));
    const Tensor own = layer_norm(tape, name + ".ln_1", x);
    x = add(tape, name + ".add_1", attend(tape, name + ".self", own, own), x);
    x = add(tape, name + ".add_2",
            attend(tape, name + ".cross", layer_norm(tape, name + ".ln_2", x), text_), x);
    const Tensor wide =
        linear(tape, name + ".mlp.up", layer_norm(tape, name + ".ln_3", x), 8 * width);
    const auto halves = chunk_last(tape, name + ".mlp.halves", wide, 2);
    const Tensor gated =
        multiply(tape, name + ".mlp.gated", halves[0], gelu(tape, name + ".mlp.gelu", halves[1]));
    x = add(tape, name + ".add_3", linear(tape, name + ".mlp.down", gated, width), x);
    const Tensor back = contiguous(tape, name + ".to_image", transpose(tape, x, 1, 2));
    return add(tape, name + ".residual", image,
               convolved(tape, name + ".out", view(tape, back, sizes), width, 1));
  }

  const StepOptions& step_;
  Tensor time_, text_;
  std::vector<Tensor> skipped_;
};

}  // namespace

ModelGraph latent_unet_blocks(const ModelSpec& model, const StepOptions& step) {
  return ImageSequence(model, step, kLatentChannels)
      .finish([&](Tape& t, const Tensor& x) { return LatentUNet(step).run(t, x); },
              LogitsOf::noise);
}

}  // namespace tessera
