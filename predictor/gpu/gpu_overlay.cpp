#include "predictor/gpu/gpu_overlay.h"

#include <algorithm>
#include <utility>

#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "predictor/gpu/gpu_effects.h"
#include "predictor/gpu/sm_rate.h"
#include "predictor/tessera_predictor.h"
#include "workloads/graph/block.h"

namespace tessera {
namespace {

std::string reason_of(const GpuOverlay& overlay) {
  const bool steps = overlay.mode == OverlayMode::calibrated_steps;
  const std::string noun = steps ? "training step" : "kernel";
  return std::to_string(overlay.rows) + " " + noun + (overlay.rows == 1 ? "" : "s") + " of " +
         overlay.source;
}

GpuEffect effect_of(const GpuOverlay& overlay, GpuEffect effect) {
  effect.tensor = overlay.tensor;
  effect.tensor.of_steps = overlay.mode == OverlayMode::calibrated_steps;
  effect.tensor.source = reason_of(overlay);
  if (overlay.tensor.rows > 0 && overlay.tensor.rows == overlay.rows) return effect;
  effect.gemm_slowdown = overlay.gemm_slowdown;
  effect.batched_slowdown = overlay.batched_slowdown;
  effect.bandwidth_slowdown = overlay.bandwidth_slowdown;
  effect.sustained_flops = overlay.sustained_flops;
  effect.floors = overlay.floors;
  effect.provenance = overlay.mode == OverlayMode::calibrated_steps
                          ? EffectProvenance::calibrated_steps
                          : EffectProvenance::calibrated;
  effect.reason = reason_of(overlay);
  return effect;
}

PredictionMode mode_of(EffectProvenance provenance) {
  switch (provenance) {
    case EffectProvenance::measured:
    case EffectProvenance::calibrated:
      return PredictionMode::calibrated;
    case EffectProvenance::calibrated_steps:
      return PredictionMode::calibrated_steps;
    case EffectProvenance::twin_die:
    case EffectProvenance::rule:
      break;
  }
  return PredictionMode::zero_shot;
}

PredictionMode mode_of(const TensorEffect& effect) {
  if (!effect.measured) return PredictionMode::zero_shot;
  return effect.of_steps ? PredictionMode::calibrated_steps : PredictionMode::calibrated;
}

}  // namespace

std::string hash_text(std::uint64_t hash) {
  return formatted("0x%016llx", static_cast<unsigned long long>(hash));
}

GpuOverlay neutral_overlay(const GpuSpec& gpu, const PredictorWeights& weights) {
  const GpuEffect effect = effect_for(gpu, weights);
  return {.gpu = gpu.id,
          .gemm_slowdown = effect.gemm_slowdown,
          .batched_slowdown = effect.batched_slowdown,
          .sustained_flops = effect.sustained_flops,
          .floors = effect.floors,
          .bandwidth_slowdown = effect.bandwidth_slowdown};
}

PredictorWeights with_overlay(PredictorWeights weights, const GpuOverlay& overlay,
                              const GpuSpec& gpu) {
  const GpuEffect effect = effect_of(overlay, effect_for(gpu, weights));
  std::erase_if(weights.calibrated, [&](const GpuEffect& e) { return e.gpu == gpu.id; });
  weights.calibrated.push_back(effect);
  return weights;
}

PredictorWeights with_overlays(const PredictorWeights& weights,
                               std::span<const GpuOverlay> overlays, const GpuSpec& gpu) {
  PredictorWeights result = weights;
  for (const GpuOverlay& overlay : overlays) {
    if (overlay.gpu != gpu.id) continue;
    if (const std::string own = hash_text(fingerprint(weights)); overlay.weights != own) {
      throw InputError({.where = "overlays",
                        .what = "the overlay of " + overlay.gpu + " was made for the weights " +
                                overlay.weights + ", these are " + own,
                        .hint = "run tessera calibrate again with " + overlay.source});
    }
    result = with_overlay(std::move(result), overlay, gpu);
  }
  return result;
}

GpuEffect effect_in_use(const GpuSpec& gpu, const PredictorWeights& weights) {
  const auto own = std::ranges::find(weights.calibrated, gpu.id, &GpuEffect::gpu);
  return own == weights.calibrated.end() ? effect_for(gpu, weights) : *own;
}

std::string_view name_of(PredictionMode mode) {
  switch (mode) {
    case PredictionMode::calibrated:
      return "calibrated";
    case PredictionMode::calibrated_steps:
      return "calibrated-steps";
    case PredictionMode::zero_shot:
      break;
  }
  return "zero-shot";
}

PredictionBasis prediction_basis(PredictorForm form, const GpuSpec& gpu,
                                 const PredictorWeights& weights) {
  if (form == PredictorForm::tessera) {
    const GpuEffect effect = effect_in_use(gpu, weights);
    return {mode_of(effect.provenance), effect.provenance, effect.reason, {}};
  }
  const bool trained_on = std::ranges::any_of(
      weights.gpus, [&](const TrainedGpu& trained) { return trained.effect.gpu == gpu.id; });
  if (form == PredictorForm::neusight && trained_on)
    return {PredictionMode::calibrated, EffectProvenance::measured, "among its training data", {}};
  return {PredictionMode::zero_shot, EffectProvenance::rule, "architecture figures alone", {}};
}

std::vector<std::string> notes_on_sheet(const GpuSpec& gpu, const Kernel& kernel) {
  std::vector<std::string> notes;
  if (!counts_as_model_flops(kernel)) return notes;
  if (const auto note = note_on_peak(gpu, kernel.precision)) notes.push_back(*note);
  if (const auto note = note_on_watts(gpu)) notes.push_back(*note);
  return notes;
}

PredictionBasis prediction_basis(PredictorForm form, const GpuSpec& gpu,
                                 const PredictorWeights& weights, std::span<const Kernel> kernels) {
  PredictionBasis basis = prediction_basis(form, gpu, weights);
  if (form != PredictorForm::tessera) return basis;
  const TesseraPredictor predictor(gpu, weights);
  const auto say = [](std::vector<std::string>& lines, const std::string& line) {
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  };
  std::vector<std::string> sources;
  for (const Kernel& kernel : kernels) {
    for (const std::string& note : predictor.notes(kernel)) say(basis.notes, note);
    for (const std::string& note : notes_on_sheet(gpu, kernel)) say(basis.notes, note);
    if (kernel.kind != KernelKind::gemm || !TensorCorePredictor::covers(kernel)) continue;
    const TensorEffect& effect = predictor.tensor_cores().products(kernel.precision).effect();
    if (effect.measured) basis.mode = mode_of(effect);
    say(sources, std::string(name_of(kernel.precision)) + " products: " + effect.reason);
  }
  for (const std::string& source : sources) basis.effect += "; " + source;
  return basis;
}

}  // namespace tessera
