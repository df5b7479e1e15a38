// ResNet: torchvision/models/resnet.py ("v1.5": the 3x3 convolution of a bottleneck has the
// stride); He et al., "Deep residual learning", 2016. ResNeXt, whose 3x3 convolutions have groups:
// Xie et al., "Aggregated residual transformations", 2017; torchvision's resnext50_32x4d. With
// squeeze and excitation: NVIDIA DeepLearningExamples,
// PyTorch/Classification/ConvNets/image_classification/models/resnet.py.
#include <array>
#include <string>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/vision/batch_norm.h"
#include "workloads/ops/vision/pooling.h"
#include "workloads/vision/architectures.h"
#include "workloads/vision/image_sequence.h"
#include "workloads/vision/layers.h"
#include "workloads/vision/squeeze_excitation.h"

namespace tessera {
namespace {

constexpr std::int64_t kFirstOutput = 256;  ///< channels of the first stage; later ones double
constexpr std::int64_t kReduction = 16;     ///< of squeeze and excitation

struct ResNet {
  std::array<int, 4> depths;  ///< bottlenecks of each stage
  std::int64_t width = 64;    ///< channels of the first stage's 3x3 convolutions; later ones double
  std::int64_t groups = 1;    ///< of the 3x3 convolutions
  bool squeezes = false;      ///< squeeze and excitation behind each bottleneck's last norm
};

struct Bottleneck {
  std::int64_t width = 0;  ///< of the 3x3 convolution
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  bool squeezes = false;
  std::int32_t stride = 1;
  bool projects = false;  ///< the shortcut has a 1x1 convolution
  bool rectifies = true;  ///< the bottleneck before left its last ReLU to this one
};

ResNet dimensions_of(VisionArchitecture architecture) {
  constexpr std::array kDepths50{3, 4, 6, 3}, kDepths101{3, 4, 23, 3};
  switch (architecture) {
    case VisionArchitecture::resnet101:
      return {.depths = kDepths101};
    case VisionArchitecture::resnext50_32x4d:
      return {.depths = kDepths50, .width = 32 * 4, .groups = 32};
    case VisionArchitecture::resnext101_32x4d:
      return {.depths = kDepths101, .width = 32 * 4, .groups = 32};
    case VisionArchitecture::se_resnext101_32x4d:
      return {.depths = kDepths101, .width = 32 * 4, .groups = 32, .squeezes = true};
    default:
      return {.depths = kDepths50};
  }
}

Tensor shortcut(Tape& tape, const Tensor& x, const Bottleneck& b) {
  if (!b.projects) return x;
  const Tensor projected =
      conv2d(tape, "shortcut.conv", x, {.out_channels = b.out_channels, .stride = b.stride});
  return batch_norm(tape, "shortcut.norm", projected);
}

/// A bottleneck without its last ReLU, which the next block runs in place on its input: so each
/// block holds both ends of what autograd saves.
Tensor bottleneck(Tape& tape, const Tensor& input, const Bottleneck& b) {
  const Tensor x = b.rectifies ? relu_(tape, "relu", input) : input;
  const Tensor narrow = convolution_norm_relu(tape, "reduce", x, {.out_channels = b.width});
  const Tensor mixed = convolution_norm_relu(
      tape, "mix", narrow,
      {.out_channels = b.width, .window = 3, .stride = b.stride, .padding = 1, .groups = b.groups});
  const Tensor wide = batch_norm(
      tape, "expand.norm", conv2d(tape, "expand.conv", mixed, {.out_channels = b.out_channels}));
  const Tensor residual = shortcut(tape, x, b);
  if (!b.squeezes) return add_(tape, "add", wide, residual);
  return add_scaled(tape, "add", residual, wide, squeeze_excitation(tape, "se", wide, kReduction));
}

Tensor resnet_stem(Tape& tape, const Tensor& images) {
  const Tensor x = convolution_norm_relu(
      tape, "stem", images, {.out_channels = 64, .window = 7, .stride = 2, .padding = 3});
  return max_pool2d(tape, "maxpool", x, {.window = 3, .stride = 2, .padding = 1});
}

}  // namespace

ModelGraph resnet_blocks(const ModelSpec& model, const StepOptions& step) {
  const ResNet net = dimensions_of(model.architecture);
  ImageSequence sequence(model, step);
  sequence.add("stem", resnet_stem);
  for (std::size_t stage = 0; stage < net.depths.size(); ++stage) {
    const std::string name = "layer" + std::to_string(stage + 1);
    const Bottleneck others{.width = net.width << stage,
                            .out_channels = kFirstOutput << stage,
                            .groups = net.groups,
                            .squeezes = net.squeezes};
    Bottleneck first = others;
    first.stride = stage == 0 ? 1 : 2;
    first.projects = true;
    first.rectifies = stage > 0;
    sequence.add_layers(name + ".first",
                        [=](Tape& t, const Tensor& x) { return bottleneck(t, x, first); });
    sequence.add_layers(
        name, [=](Tape& t, const Tensor& x) { return bottleneck(t, x, others); },
        net.depths[stage] - 1);
  }
  return std::move(sequence).finish([&](Tape& t, const Tensor& x) {
    return pooled_classifier(t, relu_(t, "relu", x), model.classes, 0);
  });
}

}  // namespace tessera
