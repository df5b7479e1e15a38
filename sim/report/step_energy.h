#pragma once

#include <optional>

#include "hw/node.h"

namespace tessera {

struct StepReport;

/// Energy of one step, of all GPUs of the job and what stands around them.
struct StepEnergy {
  double gpus_j = 0;      ///< boards of the GPUs
  double hosts_j = 0;     ///< the nodes' other parts; 0: `host_power` is not described
  double facility_j = 0;  ///< both, with cooling and supply (`pue`)
  Watts mean_gpu;         ///< of a GPU over the step
  double clock = 1;       ///< of the boost clock, in full products
};

/// From what a GPU does over the step: full products at its busy power, kernels that memory limits
/// at 0.85 of what that adds to the idle power (training ResNet-50, half of whose time they take,
/// draws 0.92 to 0.97 of what BERT's products add on P100 and V100: ml-energy/zeus), exposed
/// communication at 0.3 of it (judged), and the idle power while nothing runs. Empty where the
/// GPU's board power is not known.
std::optional<StepEnergy> step_energy(const ClusterSpec& cluster, const StepReport& report);

}  // namespace tessera
