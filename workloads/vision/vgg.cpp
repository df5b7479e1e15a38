// VGG-16 without batch norm: torchvision/models/vgg.py; Simonyan and Zisserman, 2015, column D.
#include "workloads/families/recording.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"
#include "workloads/ops/vision/pooling.h"
#include "workloads/vision/architectures.h"
#include "workloads/vision/image_sequence.h"
#include "workloads/vision/layers.h"

namespace tessera {
namespace {

struct Stage {
  int convolutions;
  std::int64_t channels;
};
constexpr Stage kStages[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};
constexpr std::int64_t kPooled = 7;
constexpr std::int64_t kWidth = 4096;
constexpr double kVggDropout = 0.5;

Tensor features(Tape& tape, const Tensor& images, const Stage& stage) {
  Tensor x = images;
  for (int i = 1; i <= stage.convolutions; ++i) {
    const std::string name = "conv" + std::to_string(i);
    const ConvolutionLayer layer{
        .out_channels = stage.channels, .window = 3, .padding = 1, .bias = true};
    x = relu_(tape, name + ".relu", conv2d(tape, name, x, layer));
  }
  return max_pool2d(tape, "maxpool", x, {});
}

Tensor classifier(Tape& tape, const Tensor& x, std::int64_t classes, double share) {
  const Tensor pooled = adaptive_average_pool2d(tape, "avgpool", x, kPooled);
  Tensor rows = view(tape, pooled, {x.sizes()[0], x.sizes()[1] * kPooled * kPooled});
  for (const std::string name : {"fc1", "fc2"}) {
    const Tensor wide = relu_(tape, name + ".relu", linear(tape, name, rows, kWidth));
    rows = dropout(tape, name + ".dropout", wide, share);
  }
  return linear(tape, "fc3", rows, classes);
}

}  // namespace

ModelGraph vgg_blocks(const ModelSpec& model, const StepOptions& step) {
  ImageSequence sequence(model, step);
  int number = 0;
  for (const Stage& stage : kStages) {
    sequence.add_layers("features" + std::to_string(++number),
                        [stage](Tape& t, const Tensor& x) { return features(t, x, stage); });
  }
  const double share = active_dropout(step, kVggDropout);
  return std::move(sequence).finish(
      [&](Tape& t, const Tensor& x) { return classifier(t, x, model.classes, share); });
}

}  // namespace tessera
