// ResNet: torchvision/models/resnet.py ("v1.5": the 3x3 convolution of a bottleneck has the
// stride); He et al., "Deep residual learning", 2016.
#include "workloads/ops/batch_norm.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/pooling.h"
#include "workloads/vision/architectures.h"
#include "workloads/vision/image_sequence.h"
#include "workloads/vision/layers.h"

namespace tessera {
namespace {

constexpr std::int64_t kExpansion = 4;

struct Bottleneck {
  std::int64_t width = 0;  ///< of the 3x3 convolution; the output has 4 times as many channels
  std::int32_t stride = 1;
  bool projects = false;  ///< the shortcut has a 1x1 convolution
  bool rectifies = true;  ///< the bottleneck before left its last ReLU to this one
};

/// A bottleneck without its last ReLU, which the next block runs in place on its input: so each
/// block holds both ends of what autograd saves.
Tensor bottleneck(Tape& tape, const Tensor& input, const Bottleneck& b) {
  const Tensor x = b.rectifies ? relu_(tape, "relu", input) : input;
  const std::int64_t out_channels = kExpansion * b.width;
  const Tensor narrow = convolution_norm_relu(tape, "reduce", x, {.out_channels = b.width});
  const Tensor mixed = convolution_norm_relu(
      tape, "mix", narrow,
      {.out_channels = b.width, .window = 3, .stride = b.stride, .padding = 1});
  const Tensor wide = batch_norm(
      tape, "expand.norm", conv2d(tape, "expand.conv", mixed, {.out_channels = out_channels}));
  if (!b.projects) return add_(tape, "add", wide, x);
  const Tensor projected =
      conv2d(tape, "shortcut.conv", x, {.out_channels = out_channels, .stride = b.stride});
  return add_(tape, "add", wide, batch_norm(tape, "shortcut.norm", projected));
}

Tensor stem(Tape& tape, const Tensor& images) {
  const Tensor x = convolution_norm_relu(
      tape, "stem", images, {.out_channels = 64, .window = 7, .stride = 2, .padding = 3});
  return max_pool2d(tape, "maxpool", x, {.window = 3, .stride = 2, .padding = 1});
}

}  // namespace

ModelGraph resnet_blocks(const ModelSpec& model, const StepOptions& step) {
  const bool deep = model.architecture == VisionArchitecture::resnet101;
  const int depths[] = {3, 4, deep ? 23 : 6, 3};
  ImageSequence sequence(model, step);
  sequence.add("stem", stem);
  for (int stage = 0; stage < 4; ++stage) {
    const std::string name = "layer" + std::to_string(stage + 1);
    const std::int64_t width = 64LL << stage;
    const Bottleneck first{width, stage == 0 ? 1 : 2, true, stage > 0};
    const Bottleneck others{.width = width};
    sequence.add_layers(name + ".first",
                        [=](Tape& t, const Tensor& x) { return bottleneck(t, x, first); });
    sequence.add_layers(
        name, [=](Tape& t, const Tensor& x) { return bottleneck(t, x, others); },
        depths[stage] - 1);
  }
  return std::move(sequence).finish([&](Tape& t, const Tensor& x) {
    return pooled_classifier(t, relu_(t, "relu", x), model.classes, 0);
  });
}

}  // namespace tessera
