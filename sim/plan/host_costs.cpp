#include "sim/plan/host_costs.h"

namespace tessera {

Seconds HostCosts::to_launch(const Segment& segment) const {
  const bool captured = segment.phase != Phase::optimizer && !segment.host_sync;
  if (captured && graphs == CudaGraphs::full_iteration) return Seconds();
  const bool one_call = captured && graphs == CudaGraphs::layers && segment.host_ops > 0;
  return per_call * static_cast<double>(one_call ? 1 : segment.host_ops);
}

HostCosts host_costs(const StepOptions& step) {
  const FrameworkProfile& profile = step.framework;
  const bool compiled = step.kernels == KernelMode::fused;
  const bool whole = profile.cuda_graphs == CudaGraphs::full_iteration;
  return {.per_call = compiled ? profile.host_per_compiled_call : profile.host_per_call,
          .per_communication = whole ? Seconds() : profile.host_per_communication,
          .graphs = profile.cuda_graphs};
}

}  // namespace tessera
