// U-Net with batch norm, padded convolutions and transposed up-sampling: milesial/Pytorch-UNet,
// unet/unet_parts.py; Ronneberger et al., 2015. One block: its shortcuts span all of it.
#include <vector>

#include "workloads/ops/views.h"
#include "workloads/ops/vision/pooling.h"
#include "workloads/vision/architectures.h"
#include "workloads/vision/image_sequence.h"
#include "workloads/vision/layers.h"

namespace tessera {
namespace {

constexpr std::int64_t kFirstChannels = 64;
constexpr int kLevels = 4;

Tensor double_convolution(Tape& tape, const std::string& name, const Tensor& x,
                          std::int64_t channels) {
  const ConvolutionLayer layer{.out_channels = channels, .window = 3, .padding = 1};
  const Tensor once = convolution_norm_relu(tape, name + ".0", x, layer);
  return convolution_norm_relu(tape, name + ".1", once, layer);
}

/// `double_convolution`, computed again in backward if `recomputes` and the input needs a gradient.
Tensor level(Tape& tape, const std::string& name, const Tensor& x, std::int64_t channels,
             bool recomputes) {
  const auto forward = [=](Tape& t) { return double_convolution(t, name, x, channels); };
  const bool again = recomputes && tape.requires_gradient(x);
  return again ? tape.checkpoint({x}, forward) : forward(tape);
}

Tensor segmentation(Tape& tape, const Tensor& images, std::int64_t classes, bool recomputes) {
  std::vector<Tensor> skipped;
  std::int64_t channels = kFirstChannels;
  Tensor x = level(tape, "inc", images, channels, recomputes);
  for (int i = 1; i <= kLevels; ++i) {
    skipped.push_back(x);
    const std::string name = "down" + std::to_string(i);
    channels *= 2;
    x = level(tape, name, max_pool2d(tape, name + ".pool", x, {}), channels, recomputes);
  }
  for (int i = 1; i <= kLevels; ++i) {
    const std::string name = "up" + std::to_string(i);
    channels /= 2;
    const Tensor grown = conv_transpose2d(tape, name + ".up", x, channels, 2);
    const Tensor padded = clone(tape, name + ".pad", grown);  // F.pad by nothing copies
    const Tensor both = concatenate(tape, name + ".cat", {skipped.back(), padded}, 1);
    skipped.pop_back();
    x = level(tape, name, both, channels, recomputes);
  }
  return conv2d(tape, "outc", x, {.out_channels = classes, .bias = true});
}

}  // namespace

ModelGraph unet_blocks(const ModelSpec& model, const StepOptions& step) {
  const bool recomputes = step.recompute == Recompute::full;
  return ImageSequence(model, step)
      .finish(
          [&](Tape& t, const Tensor& x) { return segmentation(t, x, model.classes, recomputes); },
          LogitsOf::pixels);
}

}  // namespace tessera
