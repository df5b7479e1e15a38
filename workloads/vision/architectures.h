#pragma once

#include <vector>

#include "hw/units/input_error.h"
#include "workloads/model_graph.h"

namespace tessera {

// Image models as torchvision 0.16 builds them (SE-ResNeXt: NVIDIA DeepLearningExamples; CaiT:
// facebookresearch/deit; U-Net: milesial/Pytorch-UNet; DiT: facebookresearch/DiT), in training with
// the batch's statistics, ReLU in place.

ModelGraph resnet_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph vgg_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph densenet_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph googlenet_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph inception_v4_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph unet_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph latent_unet_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph vit_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph cait_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph dit_blocks(const ModelSpec& model, const StepOptions& step);

/// Whether it reads latents of 4 channels and tells their noise.
bool is_dit(VisionArchitecture architecture);

/// The one that `model.architecture` names.
ModelGraph vision_blocks(const ModelSpec& model, const StepOptions& step);

/// Whether the model's layers hold an attention that can be recomputed by itself or fused.
bool has_plain_attention(VisionArchitecture architecture);

}  // namespace tessera
