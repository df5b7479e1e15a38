#pragma once

#include "hw/units/quantity.h"
#include "workloads/step_options.h"

namespace tessera {

/// What the host pays to hand work to the GPU.
struct HostCosts {
  Seconds per_call;  ///< one framework call, Python and dispatcher included; views cost it too
  Seconds per_communication;  ///< one collective or message call
};

/// Both framework profiles run PyTorch's dispatcher and differ only in the number of calls per
/// segment.
HostCosts host_costs(KernelMode kernels);

}  // namespace tessera
