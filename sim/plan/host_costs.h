#pragma once

#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "sim/scenario/scenario.h"
#include "workloads/program/program.h"
#include "workloads/step_options.h"

namespace tessera {

/// What the host pays to hand work to the GPU.
struct HostCosts {
  Seconds per_call;  ///< one framework call, Python and dispatcher included; views cost it too
  Seconds per_communication;  ///< one collective call; 0 where a whole step is a graph
  Seconds per_message;        ///< one message between stages; likewise
  CudaGraphs graphs = CudaGraphs::off;
  std::vector<std::string> modules;  ///< of a layer that its graphs hold; none: all
  BytesPerSecond memory;  ///< of the host's memory, for one GPU: how fast the CPU updates; 0: not
                          ///< known, and its work takes no time

  /// To launch `segment`: as many calls as it has, or one or none where a graph holds them.
  Seconds to_launch(const Segment& segment) const;
};

/// By the step's measured host, where it has one, its framework profile and the kernels that it
/// runs.
HostCosts host_costs(const StepOptions& step);
/// The same on the scenario's nodes.
HostCosts host_costs(const Scenario& scenario);

}  // namespace tessera
