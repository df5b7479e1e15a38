#include "lab/validate/models/image_runs.h"

#include <array>
#include <string_view>

namespace tessera {
namespace {

struct ArchitectureName {
  std::string_view start;  ///< of a row's model
  VisionArchitecture architecture;
};
constexpr std::array kArchitectures{
    ArchitectureName{"ResNet50", VisionArchitecture::resnet50},
    ArchitectureName{"ResNet101", VisionArchitecture::resnet101},
    ArchitectureName{"ResNeXt101-32x4d", VisionArchitecture::resnext101_32x4d},
    ArchitectureName{"SE-ResNeXt101-32x4d", VisionArchitecture::se_resnext101_32x4d},
    ArchitectureName{"VGG16", VisionArchitecture::vgg16},
    ArchitectureName{"DenseNet121", VisionArchitecture::densenet121}};

}  // namespace

VisionArchitecture architecture_of_run(const std::string& model) {
  for (const auto& [start, architecture] : kArchitectures) {
    if (model.starts_with(start)) return architecture;
  }
  return VisionArchitecture::none;
}

std::string image_obstacle(const std::string& model) {
  if (architecture_of_run(model) == VisionArchitecture::none)
    return "model = " + model + " of family = cnn is not simulated";
  return {};
}

ModelSpec image_model_of_run(const std::string& model) {
  ModelSpec spec;
  spec.name = model;
  spec.family = ModelFamily::vision;
  spec.architecture = architecture_of_run(model);
  spec.image_size = usual_image_size(spec.architecture);
  spec.classes = usual_classes(spec.architecture);
  return spec;
}

void train_images(StepOptions& step) {
  step.optimizer = OptimizerKind::sgd;
  step.clip_gradients = false;
}

}  // namespace tessera
