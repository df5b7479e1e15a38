#include "sim/plan/plan.h"

#include <map>

#include "workloads/program.h"

namespace tessera {
namespace {

/// Predictions by kernel: a transformer has fewer than a hundred distinct ones.
class PredictionCache {
 public:
  explicit PredictionCache(const KernelPredictor& predictor) : predictor_(predictor) {}

  const KernelPrediction& of(const Kernel& kernel) {
    const auto [entry, added] = predictions_.try_emplace(kernel);
    if (added) entry->second = predictor_.predict(kernel);
    return entry->second;
  }

 private:
  const KernelPredictor& predictor_;
  std::map<Kernel, KernelPrediction> predictions_;
};

TimedSegment time_segment(const Segment& segment, PredictionCache& cache, const HostCosts& host) {
  TimedSegment timed;
  timed.kernel_durations.reserve(segment.kernels.size());
  for (const KernelLaunch& launch : segment.kernels) {
    const KernelPrediction& prediction = cache.of(launch.kernel);
    timed.kernel_durations.push_back(prediction.duration);
    timed.duration += prediction.duration;
    if (prediction.extrapolated) timed.extrapolated += prediction.duration;
  }
  timed.host_time = host.per_call * static_cast<double>(segment.host_ops);
  return timed;
}

}  // namespace

std::vector<TimedSegment> time_segments(const Program& program, const KernelPredictor& predictor,
                                        const HostCosts& host) {
  PredictionCache cache(predictor);
  std::vector<TimedSegment> timed;
  timed.reserve(program.segments.size());
  for (const Segment& segment : program.segments) {
    timed.push_back(time_segment(segment, cache, host));
  }
  return timed;
}

TimedProgram plan_step(const Scenario& scenario, const PredictorWeights& weights) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  const auto predictor =
      make_predictor(scenario.predictor_form, gpu, with_overlays(weights, scenario.overlays, gpu));
  const HostCosts host = host_costs(scenario.step.kernels);
  Program program = build_program(scenario.model, scenario.step);
  auto segments = time_segments(program, *predictor, host);
  return {.program = std::move(program),
          .segments = std::move(segments),
          .topology = Topology(scenario.cluster),
          .communication_host_time = host.per_communication,
          .memory_capacity = gpu.memory};
}

PredictionBasis prediction_basis(const Scenario& scenario, const PredictorWeights& weights) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  return prediction_basis(scenario.predictor_form, gpu,
                          with_overlays(weights, scenario.overlays, gpu));
}

}  // namespace tessera
