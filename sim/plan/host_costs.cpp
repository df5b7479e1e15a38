#include "sim/plan/host_costs.h"

namespace tessera {

HostCosts host_costs(const StepOptions& step) {
  const FrameworkProfile& profile = step.framework;
  const bool compiled = step.kernels == KernelMode::fused;
  return {.per_call = compiled ? profile.host_per_compiled_call : profile.host_per_call,
          .per_communication = profile.host_per_communication};
}

}  // namespace tessera
