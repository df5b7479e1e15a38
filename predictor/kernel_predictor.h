#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hw/gpu.h"
#include "hw/units/quantity.h"
#include "predictor/spread.h"
#include "predictor/weights/training_range.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// The forms of the kernel model; chosen in the scenario (`predictor.form`).
enum class PredictorForm : std::uint8_t {
#include "configs/schema/words/predictor_form.inc"
};

/// What the GPU did before the kernel. A card holds its highest clocks for some milliseconds, until
/// its power limit lowers them.
enum class Load : std::uint8_t {
  sustained,  ///< it has been busy for long, as in a training step
  isolated,   ///< nothing: the kernel is timed by itself
};

/// How a duration came about; enough to explain it.
struct KernelPrediction {
  Seconds duration;            ///< on a queued stream: no launch gap
  Seconds compute_time;        ///< compute term before combination
  Seconds memory_time;         ///< memory term before combination
  int tile_m = 0, tile_n = 0;  ///< most likely tile; 0 for kinds without, and convolutions
  double waves = 0;            ///< tiles / SMs
  double utilization = 0;      ///< share of the roofline that is reached, in (0, 1]
  LogSpread spread;            ///< how far off the duration may be; zero where unknown
  Extrapolation extrapolated;  ///< input farthest outside the training data; widens the spread
};

/// Predicts kernels of one GPU. Pure and deterministic; safe to share between threads.
class KernelPredictor {
 public:
  virtual ~KernelPredictor() = default;
  virtual KernelPrediction predict(const Kernel& kernel) const = 0;
  Seconds duration(const Kernel& kernel) const { return predict(kernel).duration; }
  /// Launch gap of an isolated, event-timed call on top of `duration` (training files hold such
  /// timings); zero for roofline.
  virtual Seconds isolated_launch_overhead(const Kernel& kernel) const = 0;
  /// What of the prediction for kernels such as this one was never measured, a short line each:
  /// "bf16 products on L40S: never measured; rates of A100-SXM4-80GB". Equal for all kernels of a
  /// class.
  virtual std::vector<std::string> notes(const Kernel& /*kernel*/) const { return {}; }
};

struct PredictorWeights;  ///< trained parameters: predictor/weights/weights.h

/// Throws InputError where `form` needs weights that `weights` lacks. `predict` throws it for
/// kernels that the GPU cannot run (predictor/gpu/gpu_support.h asks beforehand), or that `form`
/// has no model of: the form neusight predicts fp32 alone. `load` tells for products on tensor
/// cores of the form tessera; other forms have no power limit, and that of FP32 units holds for
/// short calls too.
std::unique_ptr<KernelPredictor> make_predictor(PredictorForm form, const GpuSpec& gpu,
                                                const PredictorWeights& weights,
                                                Load load = Load::sustained);

}  // namespace tessera
