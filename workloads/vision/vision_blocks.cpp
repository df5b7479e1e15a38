#include <algorithm>
#include <string>
#include <utility>

#include "workloads/vision/architectures.h"
#include "workloads/vision/patches.h"

namespace tessera {
namespace {

/// Images that an architecture can read.
struct ImageRule {
  std::int64_t least;     ///< smaller ones leave nothing for the last windows
  std::int64_t multiple;  ///< patches or halvings come out even
};

ImageRule rule_of(VisionArchitecture architecture) {
  switch (architecture) {
    case VisionArchitecture::inception_v4:
      return {75, 1};
    case VisionArchitecture::unet:
      return {16, 16};
    case VisionArchitecture::latent_unet:
      return {8, 8};
    case VisionArchitecture::vit_b_16:
    case VisionArchitecture::vit_l_16:
    case VisionArchitecture::cait_xxs24:
    case VisionArchitecture::cait_s24:
      return {kPatch, kPatch};
    default:
      return {32, 1};
  }
}

class VisionCheck {
 public:
  VisionCheck(const ModelSpec& model, const StepOptions& step) : model_(model), step_(step) {}

  std::vector<Problem> run() && {
    check_images();
    check_batch();
    check_split();
    check_kernels();
    return std::move(problems_);
  }

 private:
  void fail(std::string where, std::string what, std::string hint) {
    problems_.push_back({std::move(where), std::move(what), std::move(hint)});
  }
  void require_positive(const std::string& field, std::int64_t value) {
    if (value > 0) return;
    fail(field, "is " + std::to_string(value), "use a number above 0");
  }
  void require_one(const std::string& field, int value) {
    if (value <= 1) return require_positive(field, value);
    fail(field, std::to_string(value) + ": image models are not split over GPUs",
         "use 1, and parallelism.data for more GPUs");
  }

  void check_images();
  void check_batch();
  void check_split();
  void check_kernels();

  const ModelSpec& model_;
  const StepOptions& step_;
  std::vector<Problem> problems_;
};

void VisionCheck::check_images() {
  require_positive("model.classes", model_.classes);
  const ImageRule rule = rule_of(model_.architecture);
  if (model_.image_size >= rule.least && model_.image_size % rule.multiple == 0) return;
  std::string hint = "use " + std::to_string(rule.least) + " or more";
  if (rule.multiple > 1) hint = "use a multiple of " + std::to_string(rule.multiple);
  fail("model.image_size",
       std::to_string(model_.image_size) + " is no size of images for " + model_.name,
       std::move(hint));
}

void VisionCheck::check_batch() {
  require_positive("micro_batch", step_.micro_batch);
  require_positive("global_batch", step_.global_batch);
  require_positive("parallelism.data", step_.layout.data);
  if (!problems_.empty()) return;
  const std::int64_t together = step_.micro_batch * step_.layout.data;
  if (step_.global_batch % together == 0) return;
  fail("global_batch",
       std::to_string(step_.global_batch) +
           " is no multiple of micro_batch * parallelism.data = " + std::to_string(together),
       "every data-parallel rank runs whole micro-batches");
}

void VisionCheck::check_split() {
  require_one("parallelism.tensor", step_.layout.tensor);
  require_one("parallelism.pipeline", step_.layout.pipeline);
  require_one("parallelism.context", step_.layout.context);
  require_one("parallelism.expert", step_.layout.expert);
  require_one("parallelism.virtual_stages", step_.layout.virtual_stages);
  if (step_.layout.sequence_parallel)
    fail("parallelism.sequence_parallel", "image models are not split over GPUs", "use false");
  if (step_.data_parallel.sharding != Sharding::none)
    fail("data_parallel.sharding", "image models are not sharded", "use none");
  if (step_.expert_imbalance != 1 || step_.expert_capacity_factor > 0)
    fail("expert_imbalance", "image models have no experts",
         "use expert_imbalance: 1 and expert_capacity_factor: 0");
}

void VisionCheck::check_kernels() {
  if (step_.framework.modules == ModuleTree::megatron)
    fail("framework", step_.framework.name + " trains GPT and Llama models only",
         "use framework: hf-eager, which is PyTorch as it is");
  const Precision precision = step_.precision;
  if (precision == Precision::fp8 || precision == Precision::int8 || precision == Precision::int64)
    fail("precision", std::string(name_of(precision)) + " trains no image model",
         "use fp32, tf32, bf16 or fp16");
  const AttentionKernels attention = step_.framework.attention;
  const bool full = activation_precision(precision) == Precision::fp32;
  const bool fused = attention != AttentionKernels::unfused;
  if (fused && (full || attention == AttentionKernels::fused_softmax) &&
      has_plain_attention(model_.architecture))
    fail("framework.attention", "image models run it unfused, or fused in 16 bit",
         "use unfused, or flash2 with precision: bf16");
  const bool one_block = model_.architecture == VisionArchitecture::latent_unet;
  if (one_block && step_.recompute == Recompute::full)
    fail("recompute", "full of the whole of " + model_.name + " is not simulated",
         "use recompute: selective or none");
  if (step_.recompute == Recompute::selective && !has_plain_attention(model_.architecture))
    fail("recompute", "selective recomputes attention, and " + model_.name + " has none",
         "use recompute: full or none");
}

}  // namespace

bool has_plain_attention(VisionArchitecture architecture) {
  return architecture == VisionArchitecture::vit_b_16 ||
         architecture == VisionArchitecture::vit_l_16 ||
         architecture == VisionArchitecture::latent_unet;
}

std::int64_t usual_image_size(VisionArchitecture architecture) {
  if (architecture == VisionArchitecture::inception_v4) return 299;
  if (architecture == VisionArchitecture::latent_unet) return 64;
  return architecture == VisionArchitecture::unet ? 512 : 224;
}

std::int64_t usual_classes(VisionArchitecture architecture) {
  if (architecture == VisionArchitecture::latent_unet) return 4;
  return architecture == VisionArchitecture::unet ? 2 : 1000;
}

std::vector<Problem> vision_problems(const ModelSpec& model, const StepOptions& step) {
  return VisionCheck(model, step).run();
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
  }
  throw InputError({"model.architecture", "is none", "name an architecture of family: vision"});
}

}  // namespace tessera
