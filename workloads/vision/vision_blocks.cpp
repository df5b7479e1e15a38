#include <algorithm>
#include <string>
#include <utility>

#include "workloads/vision/architectures.h"
#include "workloads/vision/patches.h"

namespace tessera {

bool is_dit(VisionArchitecture architecture) {
  return architecture == VisionArchitecture::dit_s_2 ||
         architecture == VisionArchitecture::dit_b_2 ||
         architecture == VisionArchitecture::dit_l_2 ||
         architecture == VisionArchitecture::dit_xl_2;
}

bool has_plain_attention(VisionArchitecture architecture) {
  return is_dit(architecture) || architecture == VisionArchitecture::vit_b_16 ||
         architecture == VisionArchitecture::vit_l_16 ||
         architecture == VisionArchitecture::latent_unet;
}

std::int64_t usual_image_size(VisionArchitecture architecture) {
  if (architecture == VisionArchitecture::inception_v4) return 299;
  if (architecture == VisionArchitecture::latent_unet) return 64;
  if (is_dit(architecture)) return 32;
  return architecture == VisionArchitecture::unet ? 512 : 224;
}

std::int64_t usual_classes(VisionArchitecture architecture) {
  if (architecture == VisionArchitecture::latent_unet) return 4;
  return architecture == VisionArchitecture::unet ? 2 : 1000;
}

ModelGraph vision_blocks(const ModelSpec& model, const StepOptions& step) {
  switch (model.architecture) {
    case VisionArchitecture::none:
      break;
    case VisionArchitecture::resnet50:
    case VisionArchitecture::resnet101:
    case VisionArchitecture::resnext50_32x4d:
    case VisionArchitecture::resnext101_32x4d:
    case VisionArchitecture::se_resnext101_32x4d:
      return resnet_blocks(model, step);
    case VisionArchitecture::vgg16:
      return vgg_blocks(model, step);
    case VisionArchitecture::densenet121:
      return densenet_blocks(model, step);
    case VisionArchitecture::googlenet:
      return googlenet_blocks(model, step);
    case VisionArchitecture::inception_v4:
      return inception_v4_blocks(model, step);
    case VisionArchitecture::unet:
      return unet_blocks(model, step);
    case VisionArchitecture::latent_unet:
      return latent_unet_blocks(model, step);
    case VisionArchitecture::vit_b_16:
    case VisionArchitecture::vit_l_16:
      return vit_blocks(model, step);
    case VisionArchitecture::cait_xxs24:
    case VisionArchitecture::cait_s24:
      return cait_blocks(model, step);
    case VisionArchitecture::dit_s_2:
    case VisionArchitecture::dit_b_2:
    case VisionArchitecture::dit_l_2:
    case VisionArchitecture::dit_xl_2:
      return dit_blocks(model, step);
  }
  throw InputError({"model.architecture", "is none", "name an architecture of family: vision"});
}

}  // namespace tessera
