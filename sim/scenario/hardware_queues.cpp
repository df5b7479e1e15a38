#include "sim/scenario/hardware_queues.h"

namespace tessera {

bool single_hardware_queue(const StepOptions& step, const GpuSpec& gpu) {
  const int connections = step.framework.cuda_device_max_connections;
  if (connections != 0) return connections == 1;
  const bool blackwell = gpu.architecture == Architecture::blackwell ||
                         gpu.architecture == Architecture::blackwell_ultra;
  return !blackwell && step.data_parallel.sharding != Sharding::parameters;
}

}  // namespace tessera
