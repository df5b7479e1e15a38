#include "sim/plan/plan.h"

#include <map>
#include <utility>

#include "predictor/gpu_support.h"
#include "workloads/program.h"

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
    const KernelKind kind = launch.kernel.kind;
    if (is_product(kind) || kind == KernelKind::attention) products += prediction.duration;
  }
  if (timed.duration.value() > 0) timed.product_share = products / timed.duration;
  timed.host_time = host.per_call * static_cast<double>(segment.host_ops);
  return timed;
}

}  // namespace

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

TimedProgram plan_step(const Scenario& scenario, const PredictorWeights& weights) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  const auto predictor =
      make_predictor(scenario.predictor_form, gpu, with_overlays(weights, scenario.overlays, gpu));
  const HostCosts host = host_costs(scenario.step);
  Program program = build_program(scenario.model, scenario.step);
  auto timed = time_segments(program, *predictor, host);
  return {.program = std::move(program),
          .segments = std::move(timed.segments),
          .topology = Topology(scenario.cluster),
          .communication_host_time = host.per_communication,
          .memory_capacity = gpu.memory,
          .kernels = std::move(timed.kernels),
          .collectives = scenario.collectives,
          .simulation = scenario.simulation};
}

PredictionBasis prediction_basis(const Scenario& scenario, const PredictorWeights& weights) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  return prediction_basis(scenario.predictor_form, gpu,
                          with_overlays(weights, scenario.overlays, gpu));
}

PredictionBasis prediction_basis(const Scenario& scenario, const PredictorWeights& weights,
                                 const TimedProgram& timed) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  std::vector<Kernel> kernels;
  for (const TimedKernel& kernel : timed.kernels) kernels.push_back(kernel.kernel);
  return prediction_basis(scenario.predictor_form, gpu,
                          with_overlays(weights, scenario.overlays, gpu), kernels);
}

}  // namespace tessera
