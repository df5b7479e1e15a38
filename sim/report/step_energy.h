#pragma once

#include <optional>
#include <vector>

#include "hw/node.h"

namespace tessera {

struct StepReport;

/// Of equal slices of a step, in each of which a GPU's power is taken as constant: peaks are means
/// over one.
inline constexpr int kPowerSlices = 256;

/// What a simulated GPU does in a step, as the power above idle sees it, in seconds of full
/// products: those count whole, kernels that memory limits 0.85 (training ResNet-50, half of whose
/// time they take, draws 0.92 to 0.97 of what BERT's products add on P100 and V100:
/// ml-energy/zeus), exposed communication 0.3 (judged).
struct GpuWork {
  int rank = 0;
  GpuSpec gpu;                 ///< of this rank
  std::vector<double> slices;  ///< seconds of full products in each of kPowerSlices
};

/// Energy of one step, of all GPUs of the job and what stands around them.
struct StepEnergy {
  double gpus_j = 0;      ///< boards of the GPUs
  double hosts_j = 0;     ///< the nodes' other parts; 0: `host_power` is not described
  double switches_j = 0;  ///< of the fabric; 0: `switch_power` is not described
  double facility_j = 0;  ///< all, with cooling and supply (`pue`)
  Watts mean_gpu;         ///< of a GPU over the step
  double clock = 1;       ///< of the boost clock, in full products; of the slowest kind of GPU
  Watts node_mean;        ///< GPUs and host of a node over the step; mean over the job's nodes
  Watts node_peak;        ///< of the node and slice with most
  Watts rack_mean;        ///< of the job's nodes in a rack; 0: `nodes_per_rack` is not known
  Watts rack_peak;
  bool host_is_confirmed = true;  ///< false: `host_power` is recalled or inferred (its source)
  Watts idle;  ///< of all nodes of the job while nothing runs, switches included, without `pue`
};

/// From what the simulated GPUs do, each for those that it stands for. A node's GPUs that the job
/// leaves idle count for its watts, not for the job's energy. Empty where the board power of a GPU
/// is not known.
std::optional<StepEnergy> step_energy(const ClusterSpec& cluster, const StepReport& report,
                                      const std::vector<GpuWork>& work,
                                      const std::vector<int>& placement = {});

}  // namespace tessera
