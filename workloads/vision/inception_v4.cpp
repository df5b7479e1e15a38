// Inception-v4: timm/models/inception_v4.py; Szegedy et al., "Inception-v4, Inception-ResNet and
// the impact of residual connections on learning", 2017.
#include <vector>

#include "workloads/ops/views.h"
#include "workloads/ops/vision/pooling.h"
#include "workloads/vision/architectures.h"
#include "workloads/vision/image_sequence.h"
#include "workloads/vision/layers.h"

namespace tessera {
namespace {

using Layers = std::vector<ConvolutionLayer>;

ConvolutionLayer pointwise(std::int64_t channels) {
  return {.out_channels = channels};
}
/// 3x3 that keeps the size.
ConvolutionLayer same(std::int64_t channels) {
  return {.out_channels = channels, .window = 3, .padding = 1};
}
/// 3x3 without padding.
ConvolutionLayer valid(std::int64_t channels, std::int32_t stride = 1) {
  return {.out_channels = channels, .window = 3, .stride = stride};
}
/// 1 x `width`, and `height` x 1, that keep the size.
ConvolutionLayer flat(std::int64_t channels, std::int32_t width) {
  return {.out_channels = channels, .window_width = width, .padding_width = width / 2};
}
ConvolutionLayer tall(std::int64_t channels, std::int32_t height) {
  return {.out_channels = channels, .window = height, .padding = height / 2, .window_width = 1};
}

Tensor chain(Tape& tape, const std::string& name, Tensor x, const Layers& layers) {
  int number = 0;
  for (const ConvolutionLayer& layer : layers)
    x = convolution_norm_relu(tape, name + "." + std::to_string(number++), x, layer);
  return x;
}

Tensor halved(Tape& tape, const std::string& name, const Tensor& x) {
  return max_pool2d(tape, name, x, {.window = 3, .stride = 2});
}

Tensor averaged(Tape& tape, const std::string& name, const Tensor& x) {
  return average_pool2d(tape, name, x, {.window = 3, .stride = 1, .padding = 1});
}

Tensor inception_stem(Tape& tape, const Tensor& images) {
  const Tensor x = chain(tape, "stem", images, {valid(32, 2), valid(32), same(64)});
  const Tensor wide = chain(tape, "mixed3.conv", x, {valid(96, 2)});
  const Tensor mixed3 = concatenate(tape, "mixed3.cat", {halved(tape, "mixed3.pool", x), wide}, 1);
  const Tensor shallow = chain(tape, "mixed4.branch0", mixed3, {pointwise(64), valid(96)});
  const Tensor deep =
      chain(tape, "mixed4.branch1", mixed3, {pointwise(64), flat(64, 7), tall(64, 7), valid(96)});
  const Tensor mixed4 = concatenate(tape, "mixed4.cat", {shallow, deep}, 1);
  const Tensor narrow = chain(tape, "mixed5.conv", mixed4, {valid(192, 2)});
  return concatenate(tape, "mixed5.cat", {narrow, halved(tape, "mixed5.pool", mixed4)}, 1);
}

Tensor inception_a(Tape& tape, const Tensor& x) {
  const Tensor zero = chain(tape, "branch0", x, {pointwise(96)});
  const Tensor one = chain(tape, "branch1", x, {pointwise(64), same(96)});
  const Tensor two = chain(tape, "branch2", x, {pointwise(64), same(96), same(96)});
  const Tensor three = chain(tape, "branch3", averaged(tape, "branch3.pool", x), {pointwise(96)});
  return concatenate(tape, "cat", {zero, one, two, three}, 1);
}

Tensor reduction_a(Tape& tape, const Tensor& x) {
  const Tensor zero = chain(tape, "branch0", x, {valid(384, 2)});
  const Tensor one = chain(tape, "branch1", x, {pointwise(192), same(224), valid(256, 2)});
  return concatenate(tape, "cat", {zero, one, halved(tape, "branch2", x)}, 1);
}

Tensor inception_b(Tape& tape, const Tensor& x) {
  const Tensor zero = chain(tape, "branch0", x, {pointwise(384)});
  const Tensor one = chain(tape, "branch1", x, {pointwise(192), flat(224, 7), tall(256, 7)});
  const Tensor two = chain(
      tape, "branch2", x, {pointwise(192), tall(192, 7), flat(224, 7), tall(224, 7), flat(256, 7)});
  const Tensor three = chain(tape, "branch3", averaged(tape, "branch3.pool", x), {pointwise(128)});
  return concatenate(tape, "cat", {zero, one, two, three}, 1);
}

Tensor reduction_b(Tape& tape, const Tensor& x) {
  const Tensor zero = chain(tape, "branch0", x, {pointwise(192), valid(192, 2)});
  const Tensor one =
      chain(tape, "branch1", x, {pointwise(256), flat(256, 7), tall(320, 7), valid(320, 2)});
  return concatenate(tape, "cat", {zero, one, halved(tape, "branch2", x)}, 1);
}

/// 1x3 and 3x1 of the same input, side by side.
Tensor cross(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor wide = chain(tape, name + ".flat", x, {flat(256, 3)});
  return concatenate(tape, name + ".cat", {wide, chain(tape, name + ".tall", x, {tall(256, 3)})},
                     1);
}

Tensor inception_c(Tape& tape, const Tensor& x) {
  const Tensor zero = chain(tape, "branch0", x, {pointwise(256)});
  const Tensor one = cross(tape, "branch1.cross", chain(tape, "branch1", x, {pointwise(384)}));
  const Tensor deep = chain(tape, "branch2", x, {pointwise(384), tall(448, 3), flat(512, 3)});
  const Tensor two = cross(tape, "branch2.cross", deep);
  const Tensor three = chain(tape, "branch3", averaged(tape, "branch3.pool", x), {pointwise(256)});
  return concatenate(tape, "cat", {zero, one, two, three}, 1);
}

}  // namespace

ModelGraph inception_v4_blocks(const ModelSpec& model, const StepOptions& step) {
  ImageSequence sequence(model, step);
  sequence.add("stem", inception_stem);
  sequence.add_layers("inception_a", inception_a, 4);
  sequence.add_layers("reduction_a", reduction_a);
  sequence.add_layers("inception_b", inception_b, 7);
  sequence.add_layers("reduction_b", reduction_b);
  sequence.add_layers("inception_c", inception_c, 3);
  return std::move(sequence).finish(
      [&](Tape& t, const Tensor& x) { return pooled_classifier(t, x, model.classes, 0); });
}

}  // namespace tessera
