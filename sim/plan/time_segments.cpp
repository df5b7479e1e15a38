#include "sim/plan/time_segments.h"

#include <map>
#include <utility>

#include "predictor/gpu/gpu_support.h"

namespace tessera {
namespace {

/// Predictions by kernel: a transformer has fewer than a hundred distinct ones.
class PredictedKernels {
 public:
  explicit PredictedKernels(const KernelPredictor& predictor) : predictor_(predictor) {}

  std::size_t position_of(const Kernel& kernel) {
    const auto [entry, added] = positions_.try_emplace(kernel, kernels_.size());
    if (added) kernels_.push_back({kernel, predictor_.predict(kernel)});
    return entry->second;
  }
  const KernelPrediction& operator[](std::size_t position) const {
    return kernels_[position].prediction;
  }
  std::vector<TimedKernel> take() { return std::move(kernels_); }

 private:
  const KernelPredictor& predictor_;
  std::map<Kernel, std::size_t> positions_;
  std::vector<TimedKernel> kernels_;
};

TimedSegment time_segment(const Segment& segment, PredictedKernels& kernels,
                          const HostCosts& host) {
  TimedSegment timed;
  Seconds products;
  timed.kernel_durations.reserve(segment.kernels.size());
  timed.kernels.reserve(segment.kernels.size());
  for (const KernelLaunch& launch : segment.kernels) {
    const std::size_t position = kernels.position_of(launch.kernel);
    const KernelPrediction& prediction = kernels[position];
    timed.kernels.push_back(position);
    timed.kernel_durations.push_back(prediction.duration);
    timed.duration += prediction.duration;
    if (loses_multiprocessors(launch.kernel.kind)) products += prediction.duration;
  }
  if (timed.duration.value() > 0) timed.product_share = products / timed.duration;
  if (host.memory > BytesPerSecond(0)) timed.duration += segment.host_moved / host.memory;
  timed.host_time = host.to_launch(segment);
  return timed;
}

}  // namespace

bool loses_multiprocessors(KernelKind kind) {
  return is_product(kind) || kind == KernelKind::attention;
}

TimedSegments time_segments(const Program& program, const KernelPredictor& predictor,
                            const HostCosts& host) {
  PredictedKernels kernels(predictor);
  TimedSegments timed;
  timed.segments.reserve(program.segments.size());
  for (const Segment& segment : program.segments)
    timed.segments.push_back(time_segment(segment, kernels, host));
  timed.kernels = kernels.take();
  return timed;
}

}  // namespace tessera
