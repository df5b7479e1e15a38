#include "sim/plan/single_gpu_step.h"

#include <algorithm>
#include <map>

#include "hw/units/input_error.h"

namespace tessera {

SingleGpuStep::SingleGpuStep(const Scenario& scenario) {
  if (scenario.step.layout.world_size() != 1)
    throw InputError(
        {.where = scenario.name,
         .what = "runs on " + std::to_string(scenario.step.layout.world_size()) + " GPUs",
         .hint = "a step in closed form needs a single GPU; simulate it instead"});
  const Program program = build_program(scenario.model, scenario.step);
  const HostCosts host = host_costs(scenario.step);
  std::map<Kernel, std::size_t> position;
  for (const Segment& segment : program.segments) {
    std::vector<std::size_t>& members = segment_kernels_.emplace_back();
    for (const KernelLaunch& launch : segment.kernels) {
      const auto [entry, added] = position.try_emplace(launch.kernel, kernels_.size());
      if (added) kernels_.push_back({.kernel = launch.kernel});
      members.push_back(entry->second);
    }
    segment_host_time_.push_back(host.to_launch(segment));
  }
  for (const ProgramOp& op : program.stages.front().ops) {
    if (op.kind != OpKind::kernels) continue;
    const auto segment = static_cast<std::size_t>(op.segment.index());
    launches_.push_back({segment, op.host_sync || program.segments[segment].host_sync});
    for (const std::size_t kernel : segment_kernels_[segment]) ++kernels_[kernel].launches;
  }
}

Seconds SingleGpuStep::step_time(const std::vector<Seconds>& durations) const {
  std::vector<Seconds> busy;
  for (const auto& members : segment_kernels_) {
    Seconds sum;
    for (const std::size_t kernel : members) sum += durations[kernel];
    busy.push_back(sum);
  }
  Seconds host, gpu;
  for (const Launch& launch : launches_) {
    host += segment_host_time_[launch.segment];
    gpu = std::max(gpu, host) + busy[launch.segment];
    if (launch.host_sync) host = gpu;
  }
  return std::max(gpu, host);
}

Seconds SingleGpuStep::step_time(const KernelPredictor& predictor) const {
  std::vector<Seconds> durations;
  for (const CountedKernel& counted : kernels_)
    durations.push_back(predictor.duration(counted.kernel));
  return step_time(durations);
}

LogSpread SingleGpuStep::spread(const KernelPredictor& predictor) const {
  SpreadSum sum;
  for (const CountedKernel& counted : kernels_) {
    const KernelPrediction prediction = predictor.predict(counted.kernel);
    sum.add(prediction.duration * static_cast<double>(counted.launches), prediction.spread);
  }
  return sum.relative();
}

}  // namespace tessera
