// DenseNet-121: torchvision/models/densenet.py; Huang et al., "Densely connected convolutional
// networks", 2017.
#include <vector>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"
#include "workloads/ops/vision/batch_norm.h"
#include "workloads/ops/vision/pooling.h"
#include "workloads/vision/architectures.h"
#include "workloads/vision/image_sequence.h"
#include "workloads/vision/layers.h"

namespace tessera {
namespace {

constexpr std::int64_t kGrowth = 32;
constexpr std::int64_t kBottleneck = 4 * kGrowth;
constexpr int kDepths[] = {6, 12, 24, 16};

/// Everything before it side by side, normalised and reduced to 128 channels.
Tensor reduced(Tape& tape, const std::string& name, const std::vector<Tensor>& features) {
  const Tensor all = concatenate(tape, name + ".cat", features, 1);
  const Tensor active = relu_(tape, name + ".relu1", batch_norm(tape, name + ".norm1", all));
  return conv2d(tape, name + ".conv1", active, {.out_channels = kBottleneck});
}

/// `recomputes`: torchvision's `memory_efficient`, the concatenation and what follows it up to the
/// first convolution run again in backward.
Tensor dense_layer(Tape& tape, const std::string& name, const std::vector<Tensor>& features,
                   bool recomputes) {
  const auto reduce = [=](Tape& t) { return reduced(t, name, features); };
  const Tensor narrow = recomputes ? tape.checkpoint(features, reduce) : reduce(tape);
  const Tensor active = relu_(tape, name + ".relu2", batch_norm(tape, name + ".norm2", narrow));
  return conv2d(tape, name + ".conv2", active,
                {.out_channels = kGrowth, .window = 3, .padding = 1});
}

Tensor dense_block(Tape& tape, const Tensor& x, int depth, bool recomputes) {
  std::vector<Tensor> features{x};
  for (int i = 1; i <= depth; ++i)
    features.push_back(dense_layer(tape, "layer" + std::to_string(i), features, recomputes));
  return concatenate(tape, "cat", features, 1);
}

Tensor transition(Tape& tape, const Tensor& x) {
  const Tensor active = relu_(tape, "relu", batch_norm(tape, "norm", x));
  const Tensor half = conv2d(tape, "conv", active, {.out_channels = x.sizes()[1] / 2});
  return average_pool2d(tape, "pool", half, {});
}

Tensor densenet_stem(Tape& tape, const Tensor& images) {
  const Tensor x = convolution_norm_relu(
      tape, "stem", images, {.out_channels = 64, .window = 7, .stride = 2, .padding = 3});
  return max_pool2d(tape, "pool", x, {.window = 3, .stride = 2, .padding = 1});
}

}  // namespace

ModelGraph densenet_blocks(const ModelSpec& model, const StepOptions& step) {
  const bool recomputes = step.recompute == Recompute::full;
  ImageSequence sequence(model, step);
  sequence.add("stem", densenet_stem);
  int number = 0;
  for (const int depth : kDepths) {
    const std::string suffix = std::to_string(++number);
    sequence.add("denseblock" + suffix,
                 [=](Tape& t, const Tensor& x) { return dense_block(t, x, depth, recomputes); });
    if (number < 4) sequence.add("transition" + suffix, transition);
  }
  return std::move(sequence).finish([&](Tape& t, const Tensor& x) {
    const Tensor features = relu_(t, "relu", batch_norm(t, "norm5", x));
    return pooled_classifier(t, features, model.classes, 0);
  });
}

}  // namespace tessera
