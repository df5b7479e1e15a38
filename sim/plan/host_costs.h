#pragma once

#include "hw/units/quantity.h"
#include "workloads/step_options.h"

namespace tessera {

/// What the host pays to hand work to the GPU.
struct HostCosts {
  Seconds per_call;  ///< one framework call, Python and dispatcher included; views cost it too
  Seconds per_communication;  ///< one collective or message call
};

/// By the step's framework profile and the kernels that it runs.
HostCosts host_costs(const StepOptions& step);

}  // namespace tessera
