#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "predictor/fp32/memory_class.h"
#include "predictor/tensor/tensor_shift.h"

namespace tessera {

/// How the effect of a GPU came about.
enum class EffectProvenance : std::uint8_t {
  measured,          ///< fitted to kernels of this GPU
  twin_die,          ///< fitted to kernels of another board with the same die
  rule,              ///< from architecture facts (predictor/gpu/gpu_effects.h)
  calibrated,        ///< an overlay fitted to kernels of this GPU (predictor/gpu/gpu_overlay.h)
  calibrated_steps,  ///< an overlay fitted to whole training steps on this GPU
};

/// Event-timed floor of isolated calls, per operator class [s].
struct LaunchFloors {
#include "configs/schema/fields/launch_floors.inc"
  double convolution = 0;  ///< 0 = not measured
};

/// What is particular to one GPU; everything else is shared.
struct GpuEffect {
  std::string gpu;              ///< id of the GPU that was measured
  double gemm_slowdown = 0;     ///< log time against the shared model, linear layers
  double batched_slowdown = 0;  ///< the same, batched products
  /// Log of peak / reached memory bandwidth, per MemoryClass.
  std::array<double, kMemoryClasses> bandwidth_slowdown{};
  std::optional<double> convolution_slowdown;  ///< convolutions; empty = not measured
  double sustained_flops = 0;  ///< power-limited GEMM rate [FLOP/s]; 0 = not limited
  LaunchFloors floors;
  TensorShift tensor;  ///< of an overlay alone
  EffectProvenance provenance = EffectProvenance::measured;
  std::string reason;  ///< which rule or which twin, in words
};

}  // namespace tessera
