// GoogLeNet with batch norm and without auxiliary classifiers: torchvision/models/googlenet.py (its
// "5x5" branch has 3x3 windows); Szegedy et al., "Going deeper with convolutions", 2015.
#include "workloads/families/recording.h"
#include "workloads/ops/views.h"
#include "workloads/ops/vision/pooling.h"
#include "workloads/vision/architectures.h"
#include "workloads/vision/image_sequence.h"
#include "workloads/vision/layers.h"

namespace tessera {
namespace {

/// Channels of an inception module's branches.
struct Inception {
  std::int64_t one, reduce3, three, reduce5, five, pooled;
};
constexpr Inception kStage3[] = {{64, 96, 128, 16, 32, 32}, {128, 128, 192, 32, 96, 64}};
constexpr Inception kStage4[] = {{192, 96, 208, 16, 48, 64},
                                 {160, 112, 224, 24, 64, 64},
                                 {128, 128, 256, 24, 64, 64},
                                 {112, 144, 288, 32, 64, 64},
                                 {256, 160, 320, 32, 128, 128}};
constexpr Inception kStage5[] = {{256, 160, 320, 32, 128, 128}, {384, 192, 384, 48, 128, 128}};
constexpr double kGoogleNetDropout = 0.2;

Tensor halve(Tape& tape, const Tensor& x, std::int32_t window) {
  return max_pool2d(tape, "maxpool", x, {.window = window, .stride = 2, .rounds_up = true});
}

Tensor inception(Tape& tape, const Tensor& x, const Inception& c) {
  const auto spatial = [&](const std::string& name, const Tensor& in, std::int64_t channels) {
    return convolution_norm_relu(tape, name, in,
                                 {.out_channels = channels, .window = 3, .padding = 1});
  };
  const auto pointwise = [&](const std::string& name, const Tensor& in, std::int64_t channels) {
    return convolution_norm_relu(tape, name, in, {.out_channels = channels});
  };
  const Tensor one = pointwise("branch1", x, c.one);
  const Tensor three = spatial("branch2.1", pointwise("branch2.0", x, c.reduce3), c.three);
  const Tensor five = spatial("branch3.1", pointwise("branch3.0", x, c.reduce5), c.five);
  const Tensor pooled =
      max_pool2d(tape, "branch4.0", x, {.window = 3, .stride = 1, .padding = 1, .rounds_up = true});
  return concatenate(tape, "cat", {one, three, five, pointwise("branch4.1", pooled, c.pooled)}, 1);
}

Tensor googlenet_stem(Tape& tape, const Tensor& images) {
  const Tensor wide = convolution_norm_relu(
      tape, "conv1", images, {.out_channels = 64, .window = 7, .stride = 2, .padding = 3});
  const Tensor half =
      max_pool2d(tape, "maxpool1", wide, {.window = 3, .stride = 2, .rounds_up = true});
  const Tensor mixed = convolution_norm_relu(tape, "conv2", half, {.out_channels = 64});
  const Tensor x =
      convolution_norm_relu(tape, "conv3", mixed, {.out_channels = 192, .window = 3, .padding = 1});
  return max_pool2d(tape, "maxpool2", x, {.window = 3, .stride = 2, .rounds_up = true});
}

void add_stage(ImageSequence& sequence, int number, std::span<const Inception> modules) {
  char letter = 'a';
  for (const Inception& channels : modules) {
    sequence.add_layers("inception" + std::to_string(number) + letter++,
                        [channels](Tape& t, const Tensor& x) { return inception(t, x, channels); });
  }
}

}  // namespace

ModelGraph googlenet_blocks(const ModelSpec& model, const StepOptions& step) {
  ImageSequence sequence(model, step);
  sequence.add("stem", googlenet_stem);
  add_stage(sequence, 3, kStage3);
  sequence.add("maxpool3", [](Tape& t, const Tensor& x) { return halve(t, x, 3); });
  add_stage(sequence, 4, kStage4);
  sequence.add("maxpool4", [](Tape& t, const Tensor& x) { return halve(t, x, 2); });
  add_stage(sequence, 5, kStage5);
  const double share = active_dropout(step, kGoogleNetDropout);
  return std::move(sequence).finish(
      [&](Tape& t, const Tensor& x) { return pooled_classifier(t, x, model.classes, share); });
}

}  // namespace tessera
