#pragma once

#include <string>

#include "workloads/model_spec.h"
#include "workloads/step_options.h"

namespace tessera {

// Training runs of image models (family "cnn"): they state neither layers nor a sequence.

inline constexpr const char* kImageFamily = "cnn";

/// "ResNet50 v1.5 (NGC PyTorch)" -> resnet50, by how the name starts; none for a model that has no
/// operator graph.
VisionArchitecture architecture_of_run(const std::string& model);

/// Why a run of `model` cannot be simulated; empty if it can.
std::string image_obstacle(const std::string& model);

/// The model of a run, on images of the usual size.
ModelSpec image_model_of_run(const std::string& model);

/// SGD with momentum where the row names no optimizer, without clipping.
void train_images(StepOptions& step);

}  // namespace tessera
