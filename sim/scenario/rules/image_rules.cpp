// Rules of image models.
#include <string>
#include <utility>

#include "sim/scenario/rules/rules.h"
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
    case VisionArchitecture::dit_s_2:
    case VisionArchitecture::dit_b_2:
    case VisionArchitecture::dit_l_2:
    case VisionArchitecture::dit_xl_2:
      return {2, 2};
    case VisionArchitecture::vit_b_16:
    case VisionArchitecture::vit_l_16:
    case VisionArchitecture::cait_xxs24:
    case VisionArchitecture::cait_s24:
      return {kPatch, kPatch};
    default:
      return {32, 1};
  }
}

/// What image models ask of a step.
class ImageRules {
 public:
  ImageRules(const ModelSpec& model, const StepOptions& step) : model_(model), step_(step) {}

  std::vector<Problem> run() && {
    check_images();
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
    if (value <= 1) return;
    fail(field, std::to_string(value) + ": image models are not split over GPUs",
         "use 1, and parallelism.data for more GPUs");
  }

  void check_images();
  void check_split();
  void check_kernels();

  const ModelSpec& model_;
  const StepOptions& step_;
  std::vector<Problem> problems_;
};

void ImageRules::check_images() {
  require_positive("model.classes", model_.classes);
  const ImageRule rule = rule_of(model_.architecture);
  if (model_.image_size >= rule.least && model_.image_size % rule.multiple == 0) return;
  std::string hint = "use " + std::to_string(rule.least) + " or more";
  if (rule.multiple > 1) hint = "use a multiple of " + std::to_string(rule.multiple);
  fail("model.image_size",
       std::to_string(model_.image_size) + " is no size of images for " + model_.name,
       std::move(hint));
}

void ImageRules::check_split() {
  require_one("parallelism.tensor", step_.layout.tensor);
  require_one("parallelism.pipeline", step_.layout.pipeline);
  require_one("parallelism.context", step_.layout.context);
  require_one("parallelism.expert", step_.layout.expert);
  require_one("parallelism.virtual_stages", step_.layout.virtual_stages);
  if (step_.layout.sequence_parallel)
    fail("parallelism.sequence_parallel", "image models are not split over GPUs", "use false");
  if (step_.data_parallel.sharding != Sharding::none)
    fail("training.data_parallel.sharding", "image models are not sharded", "use none");
  if (step_.expert_imbalance != 1 || step_.expert_capacity_factor > 0)
    fail("training.expert_imbalance", "image models have no experts",
         "use expert_imbalance: 1 and expert_capacity_factor: 0");
}

void ImageRules::check_kernels() {
  if (step_.framework.modules == ModuleTree::megatron)
    fail("training.framework", step_.framework.name + " trains GPT and Llama models only",
         "use framework: hf-eager, which is PyTorch as it is");
  const Precision precision = step_.precision;
  if (precision == Precision::fp8 || precision == Precision::int8 || precision == Precision::int64)
    fail("training.precision", std::string(name_of(precision)) + " trains no image model",
         "use fp32, tf32, bf16 or fp16");
  const AttentionKernels attention = step_.framework.attention;
  const bool full = activation_precision(precision) == Precision::fp32;
  const bool fused = attention != AttentionKernels::unfused;
  if (fused && (full || attention == AttentionKernels::fused_softmax) &&
      has_plain_attention(model_.architecture))
    fail("training.framework.attention", "image models run it unfused, or fused in 16 bit",
         "use unfused, or flash2 with precision: bf16");
  const bool one_block = model_.architecture == VisionArchitecture::latent_unet;
  if (one_block && step_.recompute == Recompute::full)
    fail("training.recompute", "full of the whole of " + model_.name + " is not simulated",
         "use recompute: selective or none");
  if (step_.recompute == Recompute::selective && !has_plain_attention(model_.architecture))
    fail("training.recompute", "selective recomputes attention, and " + model_.name + " has none",
         "use recompute: full or none");
}

}  // namespace

void check_images(const Scenario& scenario, Problems& problems) {
  for (Problem& problem : ImageRules(scenario.model, scenario.step).run())
    problems.push_back(std::move(problem));
}

}  // namespace tessera
