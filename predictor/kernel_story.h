#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predictor/attention/attention_predictor.h"
#include "predictor/gpu/gpu_overlay.h"
#include "predictor/kernel_predictor.h"
#include "predictor/product_story.h"

namespace tessera {

/// What decides the duration of a kernel on a queued stream.
enum class KernelLimit : std::uint8_t {
  compute,       ///< arithmetic on the SMs
  power,         ///< arithmetic at the rate that the board's power allows
  memory,        ///< traffic
  launch_floor,  ///< starting and draining, which every kernel takes
};
std::string_view name_of(KernelLimit limit);
/// "measured", "twin_die", "rule", "calibrated", "calibrated_steps".
std::string_view name_of(EffectProvenance provenance);

/// How the memory time of a kernel without products comes about.
struct TrafficStory {
  double bytes = 0;           ///< compulsory traffic
  double charged_bytes = 0;   ///< with what rows and missed reuse cost, in bytes of traffic
  double l2_ratio = 0;        ///< compulsory traffic / L2 size
  double l2_miss = 0;         ///< share of the traffic that misses the L2, in [0, 1]
  double hit_speedup = 1;     ///< of a hit against a miss, > 1
  double reached_share = 0;   ///< of peak bandwidth, by misses in the kernel's class
  double kind_factor = 1;     ///< time against the measured class that the kind resembles
  double issue_seconds = 0;   ///< least, by the instructions of its elements; 0 = not known
  double achieved_share = 0;  ///< compulsory traffic / duration, of peak; above 1 from the L2
  double seconds = 0;
};

/// How the time of fused attention comes about: `factor` times the forward call.
struct AttentionStory {
  AttentionParts parts;
  std::string source;  ///< measurements that it rests on, in words
};

/// How the prediction for one kernel came about: what `TesseraPredictor` computes, taken apart
/// with the formulas that were trained. The terms give `prediction` again, to rounding.
struct KernelStory {
  Kernel kernel;
  GpuTraits traits;
  GpuEffect effect;                             ///< in use, by an overlay where there is one
  bool on_tensor_cores = false;                 ///< then `effect` plays no part
  double peak_flops = 0;                        ///< of the kernel's arithmetic [FLOP/s]
  PredictionBasis basis;                        ///< what that rests on
  std::optional<ProductStory> product;          ///< products and convolutions
  std::optional<ConvolutionStory> convolution;  ///< only where convolutions were timed
  std::optional<AttentionStory> attention;
  std::optional<TrafficStory> traffic;  ///< all other kernels that move bytes
  std::vector<std::string> notes;       ///< what was never measured, as KernelPredictor::notes
  Seconds joined;                       ///< compute and memory time joined, before the bound
  Seconds bound;                        ///< roofline: no kernel is faster
  Seconds queue_floor;                  ///< what starting and draining add
  KernelLimit limit = KernelLimit::compute;
  KernelPrediction prediction;  ///< duration = max(joined, bound) + queue_floor; cold caches
  /// Of a product on tensor cores whose operands lie in the L2, as in a benchmark that repeats it;
  /// empty where the L2 does not hold them.
  std::optional<Seconds> warm_duration;
  Interval interval;   ///< 80 %
  Seconds launch_gap;  ///< what an isolated, event-timed call adds to the duration

  /// Whether the memory order of operands plays a part.
  bool has_layout() const {
    return kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::batched_gemm ||
           kernel.kind == KernelKind::grouped_gemm;
  }
  /// Of an isolated, event-timed call.
  Seconds isolated() const { return prediction.duration + launch_gap; }
};

/// Throws InputError as `TesseraPredictor` does. All sizes of `kernel` are at least 1.
KernelStory kernel_story(const Kernel& kernel, const GpuSpec& gpu, const PredictorWeights& weights);

}  // namespace tessera
