#pragma once

#include "tests/workloads/models.h"

namespace tessera::test {

/// An image model with its usual images and classes.
inline ModelSpec vision(VisionArchitecture architecture, const char* name) {
  ModelSpec model;
  model.name = name;
  model.family = ModelFamily::vision;
  model.architecture = architecture;
  model.image_size = usual_image_size(architecture);
  model.classes = usual_classes(architecture);
  return model;
}

}  // namespace tessera::test
