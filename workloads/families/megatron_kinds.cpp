// In what the layers of a model differ, and which blocks they make.
#include <algorithm>

#include "workloads/families/megatron_model.h"
#include "workloads/layer_patterns.h"
#include "workloads/parallel/layer_split.h"

namespace tessera {
namespace {

/// Whether the layer is one of the first `count` of its model chunk.
bool leads_its_chunk(const ModelSpec& model, const StepOptions& step, std::int64_t number,
                     int count) {
  const auto parts = layers_of_parts(model.layers, step);
  if (!parts) return number < count;
  for (const int layers : *parts) {
    if (number < layers) return number < count;
    number -= layers;
  }
  return false;
}

}  // namespace

LayerKind kind_of_layer(const ModelSpec& model, const StepOptions& step, std::int64_t number) {
  LayerKind kind{.experts = has_experts(model, number),
                 .window = has_window(model, number),
                 .positions = has_positions(model, number),
                 .letter = letter_of(model, number)};
  const FrameworkProfile& profile = step.framework;
  kind.bf16 =
      is_cast_for_products(step.precision) &&
      (number < profile.bf16_layers_first || number >= model.layers - profile.bf16_layers_last);
  kind.again =
      step.recompute_layers > 0 && leads_its_chunk(model, step, number, step.recompute_layers);
  kind.waits = number < step.offload_layers;
  return kind;
}

std::string name_of_block(const ModelSpec& model, const LayerKind& kind) {
  std::string name;
  if (kind.bf16) name += "bf16_";
  if (kind.again) name += "recomputed_";
  if (kind.waits) name += "offloaded_";
  switch (kind.letter) {
    case layer_letter::kMamba:
      return name + "mamba_layer";
    case layer_letter::kDelta:
      return name + "delta_layer";
    case layer_letter::kKimiDelta:
      return name + "kimi_delta_layer";
    case layer_letter::kScan:
      return name + "scan_layer";
    case layer_letter::kShortConvolution:
      return name + "convolution_layer";
    case layer_letter::kSideBySide:
      return name + "side_by_side_layer";
    case layer_letter::kAttention:
      return name + "attention_layer";
    case layer_letter::kFeedForward:
      return name + "feed_forward_layer";
    case layer_letter::kExperts:
      return name + "expert_layer";
    default:
      break;
  }
  if (model.experts > 0 && !kind.experts) name += "dense_";
  return name + (kind.window ? "window_" : "") + (kind.positions ? "" : "unturned_") + "layer";
}

}  // namespace tessera
