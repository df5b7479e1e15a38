#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/search/layout.h"
#include "hw/units/quantity.h"
#include "predictor/weights/weights.h"
#include "sim/plan/device_memory.h"

namespace tessera {

/// A layout as simulated.
struct LayoutResult {
  Layout layout;
  Seconds step_time;
  double tokens_per_s = 0;
  double mfu = 0;              ///< in [0, 1]; 0 where the GPU has no published peak
  double bubble_fraction = 0;  ///< in [0, 1]
  Bytes peak_memory;           ///< allocated, of the fullest GPU
  DeviceMemory memory;  ///< that the fullest GPU must have; it decides whether the layout fits
  bool fits = true;
  std::vector<std::pair<std::string, Seconds>> times;  ///< of a GPU, by what it does; more than 0

  std::int64_t gpus() const { return layout.gpus(); }
};

/// Simulates one step; once per process (sim/engine/engine.h). A layout whose memory plan was not
/// found is not simulated, and has no time.
LayoutResult simulate_layout(const Scenario& base, const Layout& layout,
                             const PredictorWeights& weights);

}  // namespace tessera
