#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/precision.h"
#include "predictor/gpu/gpu_effect.h"
#include "predictor/kernel_predictor.h"

namespace tessera {

/// What an overlay was fitted to.
enum class OverlayMode : std::uint8_t {
#include "configs/schema/words/overlay_mode.inc"
};

/// The effect of one GPU as measurements of it say (`tessera calibrate`); the parameters that all
/// GPUs share stay as they were trained. Members as in GpuEffect.
struct GpuOverlay {
#include "configs/schema/fields/gpu_overlay.inc"
  /// The schema's elementwise_slowdown, softmax_slowdown and layer_norm_slowdown.
  std::array<double, kMemoryClasses> bandwidth_slowdown{};
};

/// "0x" and 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

/// An overlay that changes nothing of what `weights` say about `gpu`; provenance is left empty.
GpuOverlay neutral_overlay(const GpuSpec& gpu, const PredictorWeights& weights);

/// `weights` with the effect of `gpu` as `overlay` has it. No check of the fingerprint.
PredictorWeights with_overlay(PredictorWeights weights, const GpuOverlay& overlay,
                              const GpuSpec& gpu);

/// The same for those of `overlays` that are about `gpu`. Throws InputError for an overlay that was
/// made for other weights, whose shared parameters its figures do not fit.
PredictorWeights with_overlays(const PredictorWeights& weights,
                               std::span<const GpuOverlay> overlays, const GpuSpec& gpu);

/// The effect that predictions for `gpu` use: that of an overlay, else `effect_for`.
GpuEffect effect_in_use(const GpuSpec& gpu, const PredictorWeights& weights);

/// What the prediction for a GPU rests on.
enum class PredictionMode : std::uint8_t {
  zero_shot,         ///< nothing was measured on this GPU
  calibrated,        ///< kernels of this GPU: in the training data or in an overlay
  calibrated_steps,  ///< whole training steps on this GPU, in an overlay
};

/// "zero-shot", "calibrated", "calibrated-steps".
std::string_view name_of(PredictionMode mode);

struct PredictionBasis {
  PredictionMode mode = PredictionMode::zero_shot;
  EffectProvenance provenance = EffectProvenance::rule;
  std::string effect;              ///< where the GPU's effect comes from, in words
  std::vector<std::string> notes;  ///< what was never measured, a short line each
};

/// Of fp32 kernels.
PredictionBasis prediction_basis(PredictorForm form, const GpuSpec& gpu,
                                 const PredictorWeights& weights);

/// Of the data sheet, where a product is at odds with it: peaks above what the SMs do, no watts.
std::vector<std::string> notes_on_sheet(const GpuSpec& gpu, const Kernel& kernel);

/// Of `kernels`: where they hold products in another format, the mode is calibrated if such
/// products were measured on the GPU, and `effect` names their source too. `notes` as
/// KernelPredictor::notes, each line once. Throws InputError as `predict` does.
PredictionBasis prediction_basis(PredictorForm form, const GpuSpec& gpu,
                                 const PredictorWeights& weights, std::span<const Kernel> kernels);

}  // namespace tessera
